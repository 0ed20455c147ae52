/* Uses jemalloc's own functions, by their names or by PREFIX and their names, beside malloc. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PREFIX
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define JE(name) JOIN(PREFIX, name)
#else
#define JE(name) name
#endif

void *JE(mallocx)(size_t size, int flags);
void *JE(rallocx)(void *ptr, size_t size, int flags);
size_t JE(xallocx)(void *ptr, size_t size, size_t extra, int flags);
size_t JE(sallocx)(const void *ptr, int flags);
size_t JE(nallocx)(size_t size, int flags);
void JE(dallocx)(void *ptr, int flags);
void JE(sdallocx)(void *ptr, size_t size, int flags);
int JE(mallctl)(const char *name, void *old, size_t *old_length, void *new, size_t new_length);

int main(void) {
    int wrong = 0;
    for (int i = 1; i < 3000; i++) {
        char *p = JE(mallocx)(i, 6 /* 64-byte alignment */ | 0x40 /* zeroed */);
        wrong += !p || (size_t)p % 64 || p[i - 1] || JE(sallocx)(p, 0) < (size_t)i;
        wrong += JE(nallocx)(i, 6) != JE(sallocx)(p, 0) || JE(xallocx)(p, i, 0, 6) < (size_t)i;
        p = JE(rallocx)(p, i * 2, 6);
        memset(p, 1, i * 2);
        if (i % 2) JE(dallocx)(p, 0);
        else JE(sdallocx)(p, i * 2, 6);
        free(malloc(i));
#ifndef PREFIX
        free(JE(mallocx)(i, 0));
        JE(dallocx)(strdup("of libc"), 0);
#endif
    }
    unsigned arena;
    size_t length = sizeof arena;
    wrong += JE(mallctl)("arenas.create", &arena, &length, NULL, 0) != 0;
    void *there = JE(mallocx)(10000, (int)(arena + 1) << 20);
    wrong += there == NULL;
    JE(dallocx)(there, 0);
    bool off = false;
    wrong += JE(mallctl)("thread.tcache.enabled", NULL, NULL, &off, sizeof off) != 0;
    wrong += JE(mallctl)("thread.tcache.flush", NULL, NULL, NULL, 0) != 14 /* EFAULT: there is none now */;
    printf("%d wrong\n", wrong);
    return 5;
}
