/* A service that leaks until somebody kills it. usage: leaker BYTES-AT-ONCE MICROSECONDS-BETWEEN
 *
 * Prints `ready`, then touches everything that it allocates and frees nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *volatile last;

__attribute__((noinline)) static void leak_in_a_handler(size_t size) {
    void **p = malloc(size);
    if (p == NULL) exit(3);
    memset(p, 0x5a, size);
    *p = last;
    last = p;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    long pause = atol(argv[2]);
    struct timespec between = {pause / 1000000, pause % 1000000 * 1000};
    puts("ready");
    fflush(stdout);
    for (;;) {
        leak_in_a_handler((size_t)atol(argv[1]));
        nanosleep(&between, NULL);
    }
}
