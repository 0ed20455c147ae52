/* Fragmentation whose waste is known: PLANTED sessions are made one after the other, then all but each KEEP-th end. A
 * slab of 448-byte regions has 64 of them, so each slab keeps one survivor. In `healthy` mode only the survivors are
 * ever made. In `headless` mode they are made likewise, and the first thread ends before the line is printed. Prints a
 * line when it stands, then waits for the end of its input. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 448, KEEP = 64, PLANTED = 512 * 1024 };

static void *sessions[PLANTED];
static void *others[20000];

/* The surviving site. */
__attribute__((noinline)) void *session_new(void) {
    void *session = malloc(SIZE);
    if (!session) abort();
    memset(session, 1, SIZE);
    return session;
}

/* Dense neighbours in other classes. */
__attribute__((noinline)) void *record_new(size_t size) {
    void *record = malloc(size);
    if (!record) abort();
    memset(record, 2, size);
    return record;
}

static void ready(size_t kept) {
    printf("ready %zu %d\n", kept, SIZE);
    fflush(stdout);
    while (getchar() != EOF) {}
}

static pthread_t first;

static void *stay(void *kept) {
    pthread_join(first, NULL);
    ready((size_t)kept);
    exit(0);
}

int main(int argc, char **argv) {
    int headless = argc > 1 && !strcmp(argv[1], "headless");
    int healthy = headless || (argc > 1 && !strcmp(argv[1], "healthy"));
    size_t kept = 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) others[i] = record_new(64 << (i % 4));
    for (size_t i = 0; i < PLANTED; i++)
        if (!healthy || i % KEEP == 0) sessions[i] = session_new();
    for (size_t i = 0; i < PLANTED; i++) {
        if (i % KEEP == 0) {
            kept++;
        } else if (!healthy) {
            free(sessions[i]);
            sessions[i] = NULL;
        }
    }
    if (headless) {
        pthread_t thread;
        first = pthread_self();
        if (pthread_create(&thread, NULL, stay, (void *)kept)) abort();
        pthread_exit(NULL);
    }
    ready(kept);
    return sessions[0] == others[0];
}
