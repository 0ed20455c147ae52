// A library to be loaded late.
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) void *allocate(size_t size) {
    char *p = malloc(size);
    memset(p, 1, size);
    return p;
}
