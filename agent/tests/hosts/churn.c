/* A host that does nothing but allocate and free, on several threads, and tells how fast.
 *
 * Answers each line on its standard input: `work N` runs N rounds on every thread and prints `done SECONDS`,
 * `quit` ends. usage: churn THREADS */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLOTS = 1 << 16 };

struct worker {
    pthread_t thread;
    long rounds;
    uint64_t state;
    void *slots[SLOTS];
};

static uint64_t next(uint64_t *state) { /* xorshift64 */
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* The path through these two is the bits of `path` below its highest one: 2^PATH stacks, and so a dump that no socket
 * buffer holds at once. */
enum { PATH = 12 };
static void *left(uint64_t size, unsigned path);
static void *right(uint64_t size, unsigned path);
static void *step(uint64_t size, unsigned path) {
    return path == 1 ? malloc(size) : path & 1 ? left(size, path >> 1) : right(size, path >> 1);
}
__attribute__((noinline)) static void *left(uint64_t size, unsigned path) {
    void *volatile p = step(size, path);
    return p;
}
__attribute__((noinline)) static void *right(uint64_t size, unsigned path) {
    void *volatile p = step(size, path);
    return p;
}

static void *run(void *argument) {
    struct worker *worker = argument;
    for (long i = 0; i < worker->rounds; i++) {
        uint64_t random = next(&worker->state);
        void **slot = &worker->slots[random % SLOTS];
        uint64_t size = 16u << (random >> 20 & 7);
        free(*slot);
        *slot = step(size, 1u << PATH | (random >> 30 & ((1u << PATH) - 1)));
        memset(*slot, 0x5a, 16);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 2;
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    char line[64];
    for (int i = 0; i < threads; i++) workers[i].state = 88172645463325252u + (uint64_t)i;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && strncmp(line, "work ", 5) == 0) {
        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        for (int i = 0; i < threads; i++) {
            workers[i].rounds = atol(line + 5);
            if (pthread_create(&workers[i].thread, NULL, run, &workers[i]) != 0) return 1;
        }
        for (int i = 0; i < threads; i++) pthread_join(workers[i].thread, NULL);
        clock_gettime(CLOCK_MONOTONIC, &end);
        printf("done %.6f\n", (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9);
        fflush(stdout);
    }
    return 0;
}
