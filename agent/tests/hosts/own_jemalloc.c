// A host that brings an allocator of its own: the executable's malloc comes first in the search.
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Alignas(16) char heap[64 << 20];
static _Atomic size_t used;

static void *take(size_t size, size_t align) {
    size_t total = size + align + 16;
    char *p = heap + __atomic_fetch_add((size_t *)&used, (total + 15) & ~(size_t)15, __ATOMIC_RELAXED);
    char *aligned = (char *)(((uintptr_t)p + 16 + align - 1) & ~(uintptr_t)(align - 1));
    ((size_t *)aligned)[-1] = size;
    return aligned;
}
void *malloc(size_t size) { return take(size, 16); }
void free(void *p) {
    if (p && ((char *)p < heap || (char *)p >= heap + sizeof heap)) {
        write(2, "foreign\n", 8);
        _exit(9);
    }
}
void *calloc(size_t n, size_t size) { return memset(take(n * size, 16), 0, n * size); }
void *realloc(void *old, size_t size) {
    char *p = take(size, 16);
    if (old) {
        size_t before = ((size_t *)old)[-1];
        memcpy(p, old, before < size ? before : size);
    }
    return p;
}
void *memalign(size_t align, size_t size) { return take(size, align); }
void *aligned_alloc(size_t align, size_t size) { return take(size, align); }
int posix_memalign(void **out, size_t align, size_t size) { *out = take(size, align); return 0; }
// What it would configure its own jemalloc with; the agent's must not read it.
const char *malloc_conf = "narenas:3,abort_conf:true,no_such_option:1";

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    char line[64];
    while (fgets(line, sizeof line, stdin)) puts("alive");
    return 0;
}
