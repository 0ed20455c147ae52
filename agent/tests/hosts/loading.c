// Threads that allocate through a library, which another thread loads and unloads all the time.
//   loading LIBRARY ROUNDS
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_int stop;

static void *churn(void *unused) {
    while (!atomic_load(&stop)) {
        void *p[64];
        for (int i = 0; i < 64; i++) p[i] = malloc(100 + i * 50);
        for (int i = 0; i < 64; i++) free(p[i]);
    }
    return unused;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, churn, NULL);
    for (int i = atoi(argv[2]); i > 0; i--) {
        void *library = dlopen(argv[1], RTLD_NOW);
        if (!library) { puts(dlerror()); return 1; }
        void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "allocate");
        for (int k = 0; k < 20; k++) free(allocate(3000));
        dlclose(library);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    puts("done");
    return 6;
}
