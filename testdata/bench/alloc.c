// What an allocator costs.
//
//   alloc stack DEPTH COUNT        one stack as jemalloc's profiler takes it, by the unwinder that is in place, nanoseconds
//   alloc sampled DEPTH COUNT      malloc and free at the bottom of a recursion, nanoseconds a pair
//   alloc throughput THREADS MS    a mix of sizes on several threads, million pairs a second
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

__attribute__((noinline)) static void pairs(long count) {
    for (long i = 0; i < count; i++) {
        char *volatile p = malloc(64);
        *p = 1;
        free(p);
    }
}

typedef void (*hook)(void **, unsigned *, unsigned);
static hook unwind;

__attribute__((noinline)) static void stacks(long count) {
    void *frames[128];
    for (long i = 0; i < count; i++) {
        unsigned length = 0;
        unwind(frames, &length, 128);
        if (length < 3) { fputs("no stack\n", stderr); exit(1); }
    }
}

__attribute__((noinline)) static void descend(int depth, long count) {
    volatile char frame[48];
    frame[0] = (char)depth;
    if (depth > 0) descend(depth - 1, count);
    else if (unwind) stacks(count);
    else pairs(count);
    frame[1] = frame[0];
}

static atomic_int stop;

static void *churn(void *seed_pointer) {
    enum { HELD = 512 };
    void *held[HELD] = {0};
    uint64_t x = (uint64_t)(uintptr_t)seed_pointer * 0x9e3779b97f4a7c15u + 1, count = 0;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        for (int i = 0; i < 256; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            unsigned slot = (x >> 40) % HELD;
            // Mostly small, as programs allocate: one in 64 is a few pages.
            size_t size = (x >> 20) % 64 ? 16 + (x >> 33) % 496 : 4096 + (x >> 33) % 28672;
            free(held[slot]);
            held[slot] = malloc(size);
            *(char *)held[slot] = 1;
        }
        count += 256;
    }
    for (int i = 0; i < HELD; i++) free(held[i]);
    return (void *)(uintptr_t)count;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    long a = atol(argv[2]), b = atol(argv[3]);
    if (!strcmp(argv[1], "stack")) {
        int (*mallctl)(const char *, void *, size_t *, void *, size_t) =
            (int (*)(const char *, void *, size_t *, void *, size_t))dlsym(RTLD_DEFAULT, "mallctl");
        size_t length = sizeof unwind;
        if (!mallctl || mallctl("experimental.hooks.prof_backtrace", &unwind, &length, NULL, 0)) return 1;
    }
    if (!strcmp(argv[1], "stack") || !strcmp(argv[1], "sampled")) {
        descend((int)a, b / 10);  // warm: caches, tables, thresholds drawn at an earlier rate
        double begin = now();
        descend((int)a, b);
        printf("%.1f\n", (now() - begin) / b);
    } else {
        pthread_t threads[64];
        double begin = now();
        for (long i = 0; i < a; i++) pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)(i + 1));
        struct timespec pause = {b / 1000, b % 1000 * 1000000};
        nanosleep(&pause, NULL);
        atomic_store(&stop, 1);
        uint64_t sum = 0;
        for (long i = 0; i < a; i++) {
            void *count;
            pthread_join(threads[i], &count);
            sum += (uintptr_t)count;
        }
        printf("%.2f\n", sum / (now() - begin) * 1e3);
    }
    return 0;
}
