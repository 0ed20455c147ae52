// Threads that allocate, free each other's memory, and check every byte; prints a sum.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 20000, SLOTS = 256 };
static _Atomic(unsigned char *) slots[SLOTS];
static _Atomic uint64_t sum;

static void *work(void *seed_pointer) {
    uint64_t x = (uint64_t)seed_pointer * 0x9e3779b97f4a7c15u + 1;
    uint64_t local = 0;
    for (int i = 0; i < ROUNDS; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        size_t size = 16 + (x >> 33) % 3000;
        unsigned char *p = i % 3 ? malloc(size) : calloc(1, size);
        memset(p, (int)(size & 0xff), size);
        memcpy(p, &size, sizeof size);
        local += size;
        unsigned char *old = __atomic_exchange_n((unsigned char **)&slots[(x >> 20) % SLOTS], p, __ATOMIC_ACQ_REL);
        if (old) {
            size_t n;
            memcpy(&n, old, sizeof n);
            for (size_t k = sizeof n; k < n; k++)
                if (old[k] != (unsigned char)(n & 0xff)) { puts("corrupt"); exit(3); }
            free(old);
        }
    }
    sum += local;
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%llu\n", (unsigned long long)sum);
    return 5;
}
