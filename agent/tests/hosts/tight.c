/* Little room. usage: tight MODE; prints `ready`, then `done` when all is well, and waits for its standard input to end.
 *   stack      threads of PTHREAD_STACK_MIN
 *   alternate  a signal handler that allocates, on an alternate stack of SIGSTKSZ
 *   coroutine  coroutines that allocate, on stacks of 16 KiB which are themselves allocated
 *   tls        thread-local storage of TLS bytes (given at compile time), in every thread
 *   library L  loads a library with thread-local storage in the static block, and allocates from it
 *   memory     allocates until there is no more, and goes on with what it has
 *   files      opens descriptors until there is no more, and closes them
 *   faults     allocates inside and outside of a handler of its own faults, as garbage collectors and Go use them */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef TLS
#define TLS 1
#endif
static _Thread_local char local[TLS];
static void *volatile last;

static int allocate(int times) {
    for (int i = 1; i <= times; i++) {
        char *p = malloc(i * 100);
        if (!p) return 1;
        memset(p, 1, i * 100);
        last = p;
        free(p);
    }
    return 0;
}

static void *run(void *unused) {
    local[TLS - 1] = 1;
    return allocate(100) ? (void *)1 : unused;
}

static int threads(size_t stack_bytes, int count) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack_bytes && pthread_attr_setstacksize(&attributes, stack_bytes)) return 1;
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        void *failed;
        if (pthread_create(&thread, &attributes, run, NULL) || pthread_join(thread, &failed) || failed) return 2;
    }
    return 0;
}

static int handled;
static void handler(int signal) {
    (void)signal;
    handled += allocate(1) == 0;
}

static int alternate(void) {
    stack_t stack = {.ss_sp = malloc(SIGSTKSZ), .ss_size = SIGSTKSZ};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 2000; i++) raise(SIGUSR1);
    return handled != 2000;
}

static char *guarded;
static int faults;
static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    // A fault that is not the host's own is somebody else's in its process.
    if ((char *)info->si_addr != guarded + 100 || allocate(1)) _exit(4);
    mprotect(guarded, 4096, PROT_READ | PROT_WRITE);
    faults++;
}

static int own_faults(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    for (int i = 0; i < 2000; i++) {
        if (allocate(3)) return 1;
        guarded[100] = 1;
        mprotect(guarded, 4096, PROT_NONE);
    }
    return faults != 2000;
}

enum { COROUTINES = 50, COROUTINE_STACK = 16 << 10 };
static ucontext_t scheduler, contexts[COROUTINES];
static int finished;
static void coroutine(void) {
    for (int i = 0; i < 20; i++) {
        if (allocate(20)) _exit(3);
        swapcontext(&contexts[finished % COROUTINES], &scheduler);
    }
}

static int coroutines(void) {
    for (int i = 0; i < COROUTINES; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = malloc(COROUTINE_STACK);
        contexts[i].uc_stack.ss_size = COROUTINE_STACK;
        contexts[i].uc_link = &scheduler;
        makecontext(&contexts[i], coroutine, 0);
    }
    for (int round = 0; round < 20; round++)
        for (finished = 0; finished < COROUTINES; finished++) swapcontext(&scheduler, &contexts[finished]);
    return 0;
}

static int library(const char *path) {
    for (int i = 0; i < 50; i++) {
        void *loaded = dlopen(path, RTLD_NOW);
        if (!loaded) { puts(dlerror()); return 1; }
        void *(*from)(size_t) = (void *(*)(size_t))dlsym(loaded, "allocate");
        for (int k = 1; k < 50; k++) free(from(k * 100));
        dlclose(loaded);
    }
    return 0;
}

static int memory(void) {
    size_t blocks = 0;
    void *list = NULL;
    for (void **block; (block = malloc(100000)); blocks++) {
        memset(block, 1, 100000);
        *block = list;
        list = block;
    }
    if (errno != ENOMEM || blocks < 100) return 1;
    for (int i = 0; i < 20; i++) {
        void *next = *(void **)list;
        free(list);
        list = next;
    }
    return allocate(500);
}

static int files(void) {
    int opened[4096], count = 0, fd;
    while (count < 4096 && (fd = open("/dev/null", O_RDONLY)) >= 0) opened[count++] = fd;
    if (errno != EMFILE) return 1;
    if (allocate(500)) return 2;
    while (count) close(opened[--count]);
    return 0;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    int failed = 99;
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    if (!strcmp(mode, "wait")) getchar();
    if (argc > 2 && !strcmp(argv[1], "wait")) mode = argv[2];
    if (!strcmp(mode, "stack")) failed = threads(PTHREAD_STACK_MIN, 200);
    if (!strcmp(mode, "alternate")) failed = alternate();
    if (!strcmp(mode, "coroutine")) failed = coroutines();
    if (!strcmp(mode, "tls")) failed = threads(0, 20);
    if (!strcmp(mode, "library")) failed = library(argv[argc - 1]);
    if (!strcmp(mode, "memory")) failed = memory();
    if (!strcmp(mode, "files")) failed = files();
    if (!strcmp(mode, "faults")) failed = own_faults();
    if (failed) printf("failed %d\n", failed);
    else puts("done");
    getchar();
    return 8;
}
