// A library to be loaded late, and one that is loaded to look names up in its own dependencies first.
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) void *allocate(size_t size) {
    char *p = malloc(size);
    memset(p, 1, size);
    return p;
}

void release(void *p) { free(p); }
