// Loads a library with RTLD_DEEPBIND and passes memory to and fro. A relative name is found by the caller's own RUNPATH.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
    if (!library) { puts(dlerror()); return 1; }
    void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "allocate");
    void (*release)(void *) = (void (*)(void *))dlsym(library, "release");
    for (int i = 1; i < 1000; i++) {
        free(allocate(i * 10));
        release(malloc(i * 10));
    }
    puts("done");
    return 4;
}
