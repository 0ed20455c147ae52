/* Makes children in every way there is, from threads, while other threads allocate.
 * usage: children ROUNDS
 *
 * Prints `ready`, then per way how its children ended, then waits for its standard input to end. A child of fork or clone
 * allocates on what it inherited, throws nothing away that is its parent's, and ends with 42; the others execute `sh`,
 * which ends with 43. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static atomic_int stop;
static int rounds;

static void *churn(void *unused) {
    unsigned state = 1;
    void *slots[256] = {0};
    while (!atomic_load(&stop)) {
        state = state * 1103515245 + 12345;
        void **slot = &slots[state >> 16 & 255];
        free(*slot);
        *slot = malloc(1 + (state >> 8) % 9000);
    }
    for (int i = 0; i < 256; i++) free(slots[i]);
    return unused;
}

static void allocate_in_child(void) {
    pthread_t thread;
    for (int i = 0; i < 300; i++) {
        char *p = malloc(1 + i * 100);
        if (!p) _exit(1);
        memset(p, 1, 1 + i * 100);
        free(p);
    }
    atomic_store(&stop, 1);
    if (pthread_create(&thread, NULL, churn, NULL) || pthread_join(thread, NULL)) _exit(2);
    exit(42); /* with its destructors */
}

static char *const shell[] = {"sh", "-c", "exit 43", NULL};

static pid_t by_fork(void) {
    pid_t child = fork();
    if (child == 0) allocate_in_child();
    return child;
}
static pid_t by_fork_and_exec(void) {
    pid_t child = fork();
    if (child == 0) {
        execv("/bin/sh", shell);
        _exit(3);
    }
    return child;
}
static pid_t by_vfork(void) {
    pid_t child = vfork();
    if (child == 0) {
        execv("/bin/sh", shell);
        _exit(3);
    }
    return child;
}
static pid_t by_spawn(void) {
    pid_t child;
    return posix_spawn(&child, "/bin/sh", NULL, NULL, shell, environ) ? -1 : child;
}
/* Without libc's handlers: another thread may hold a lock of the allocator for ever, so the child calls only the kernel. */
static pid_t by_clone(void) {
    pid_t child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        execv("/bin/sh", shell);
        _exit(3);
    }
    return child;
}
/* A grandchild that lives on, with everything closed, as daemons are made. */
static pid_t by_daemon(void) {
    pid_t child = fork();
    if (child == 0) {
        if (fork()) _exit(43);
        setsid();
        closefrom(0);
        allocate_in_child();
    }
    return child;
}

static const struct {
    const char *name;
    pid_t (*make)(void);
} ways[] = {{"fork", by_fork},   {"fork+exec", by_fork_and_exec}, {"vfork", by_vfork},
            {"spawn", by_spawn}, {"clone", by_clone},             {"daemon", by_daemon}};
enum { WAYS = sizeof ways / sizeof *ways };
static int ends[WAYS][256];

static void *make(void *number) {
    long way = (long)number;
    for (int i = 0; i < rounds; i++) {
        int status = 0;
        pid_t child = ways[way].make();
        if (child < 0 || waitpid(child, &status, 0) != child) ends[way][255]++;
        else ends[way][WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status)]++;
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[WAYS + 2];
    rounds = argc > 1 ? atoi(argv[1]) : 10;
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    for (int i = 0; i < 2; i++) pthread_create(&threads[WAYS + i], NULL, churn, NULL);
    for (long i = 0; i < WAYS; i++) pthread_create(&threads[i], NULL, make, (void *)i);
    for (int i = 0; i < WAYS; i++) pthread_join(threads[i], NULL);
    atomic_store(&stop, 1);
    for (int i = 0; i < 2; i++) pthread_join(threads[WAYS + i], NULL);
    for (int i = 0; i < WAYS; i++)
        for (int code = 0; code < 256; code++)
            if (ends[i][code]) printf("%s: %d ended with %d\n", ways[i].name, ends[i][code], code);
    puts("done");
    getchar();
    return 6;
}
