// Prints "ready", then obeys one command a line:
//   leak SIZE COUNT   allocates and keeps, from leak_here()
//   free              frees what was kept
//   fork              forks; the child reports whether it can allocate and whether its parent's socket is its own
//   owner             says which object owns malloc
//   threads N         N threads allocate and free until done
//   dlopen PATH       loads a library and calls its `allocate(size)` 100 times
//   close             closes every descriptor from 3 to 1023 and opens /dev/null under all those numbers
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void *kept[1000000];
static size_t kept_count;

__attribute__((noinline)) void leak_here(size_t size) {
    char *p = malloc(size);
    memset(p, 1, size);
    kept[kept_count++] = p;
}

__attribute__((noinline)) void leak_deeper(size_t size, int depth) {
    if (depth > 0) leak_deeper(size, depth - 1);
    else leak_here(size);
    __asm__ volatile("" ::: "memory");
}

static void *churn(void *rounds) {
    for (long i = 0; i < (long)rounds; i++) {
        char *p = malloc(1 + i % 5000);
        p[0] = 1;
        free(p);
    }
    return NULL;
}

int main(void) {
    char line[4096];
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        size_t size, count;
        char path[4096];
        if (sscanf(line, "leak %zu %zu", &size, &count) == 2) {
            for (size_t i = 0; i < count; i++) leak_deeper(size, 3);
            puts("leaked");
        } else if (!strcmp(line, "free")) {
            while (kept_count) free(kept[--kept_count]);
            puts("freed");
        } else if (!strcmp(line, "owner")) {
            Dl_info info;
            dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info);
            puts(info.dli_fname);
        } else if (!strcmp(line, "fork")) {
            pid_t child = fork();
            if (child == 0) {
                for (int i = 0; i < 1000; i++) leak_here(1000);
                int sockets = 0;
                for (int fd = 3; fd < 4096; fd++) {
                    int type;
                    socklen_t length = sizeof type;
                    if (!getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length)) sockets++;
                }
                _exit(sockets == 0 ? 42 : 43);
            }
            int status;
            waitpid(child, &status, 0);
            printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        } else if (sscanf(line, "threads %zu", &count) == 1) {
            pthread_t threads[64];
            for (size_t i = 0; i < count; i++) pthread_create(&threads[i], NULL, churn, (void *)100000);
            for (size_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
            puts("joined");
        } else if (sscanf(line, "dlopen %4095s", path) == 1) {
            void *library = dlopen(path, RTLD_NOW);
            if (!library) { puts(dlerror()); continue; }
            void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "allocate");
            for (int i = 0; i < 100; i++) kept[kept_count++] = allocate(10000);
            puts("loaded");
        } else if (!strcmp(line, "close")) {
            int null = open("/dev/null", O_RDWR);
            for (int fd = 3; fd < 1024; fd++)
                if (fd != null) dup2(null, fd);
            puts("closed");
        } else {
            puts("what?");
        }
    }
    return 7;
}
