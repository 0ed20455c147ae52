/* Memory that comes and goes as fast as it can: small and huge allocations, arenas' extents, mappings of its own, threads.
 * usage: mapping THREADS; prints `ready`, works until its standard input ends. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SLOTS = 512, OWN = 16 };
static atomic_int stop;
static atomic_long rounds;

static uint64_t next(uint64_t *state) { /* xorshift64 */
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static void *brief(void *unused) {
    for (int i = 0; i < 50; i++) free(malloc(1 << (i % 14)));
    return unused;
}

static void *churn(void *seed) {
    uint64_t state = 88172645463325252u + (uintptr_t)seed;
    void *slots[SLOTS] = {0}, *own[OWN] = {0};
    size_t sizes[OWN] = {0};
    while (!atomic_load(&stop)) {
        uint64_t random = next(&state);
        void **slot = &slots[random % SLOTS];
        free(*slot);
        /* 16 B to 4 MiB, small ones more often. */
        size_t size = 16ul << (random >> 20 & 15) << (random >> 30 & 3);
        if ((*slot = malloc(size))) memset(*slot, 1, 16);
        if (random >> 40 & 1) {
            int i = (int)(random >> 44) % OWN;
            if (own[i]) munmap(own[i], sizes[i]);
            sizes[i] = ((random >> 50 & 255) + 1) << 12;
            own[i] = mmap(NULL, sizes[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (own[i] == MAP_FAILED) own[i] = NULL;
        }
        if ((random >> 58) == 0) {
            pthread_t thread;
            if (!pthread_create(&thread, NULL, brief, NULL)) pthread_join(thread, NULL);
        }
        atomic_fetch_add(&rounds, 1);
    }
    for (int i = 0; i < SLOTS; i++) free(slots[i]);
    for (int i = 0; i < OWN; i++)
        if (own[i]) munmap(own[i], sizes[i]);
    return NULL;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 4;
    pthread_t threads[64];
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (long i = 0; i < count; i++) pthread_create(&threads[i], NULL, churn, (void *)i);
    puts("ready");
    getchar();
    atomic_store(&stop, 1);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    printf("%ld rounds\n", atomic_load(&rounds));
    return 4;
}
