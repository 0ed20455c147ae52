/* Hosts that begin, go on and end in odd ways. usage: odd MODE; what it prints and how it ends depends on MODE alone.
 *   atfork     handlers of fork that allocate, in parent and child
 *   keys       destructors of thread-specific data that allocate, and put new data in place
 *   daemon     forks twice and leaves its session; the grandchild works and reports through a pipe
 *   nofile     may have no more descriptors than the standard ones
 *   closing    closes every number it can think of, twice, and uses the numbers itself
 *   dumpable   forbids that it is looked into
 *   identity   is another user, one after another, and one without privileges at last
 *   execute    a thread that is not the first replaces the program, while others allocate
 *   exit, thread, quick, under, abort, leave, kill
 *              ends while four threads allocate: by exit with handlers that allocate, the same from a thread, quick_exit,
 *              _exit, abort, pthread_exit of the first thread, a signal */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int stop;
static int before, after;
static pthread_key_t key;
static atomic_int destroyed;

static void use(int times) {
    static _Thread_local void *kept[64];
    for (int i = 0; i < times; i++) {
        free(kept[i & 63]);
        kept[i & 63] = memset(malloc(i % 5000 + 1), 1, i % 5000 + 1);
    }
}

static void *churn(void *turns) {
    for (long left = (long)turns; !atomic_load(&stop) && left != 0; left--) use(64);
    return NULL;
}

static void start(int count, long turns) {
    pthread_t thread;
    for (int i = 0; i < count; i++) {
        if (pthread_create(&thread, NULL, churn, (void *)turns)) exit(90);
        pthread_detach(thread);
    }
}

static void prepare(void) { use(300), before++; }
static void done(void) { use(300), after++; }

static int forks(void) {
    int failed = 0;
    pthread_atfork(prepare, done, done);
    start(3, -1);
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        if (child == 0) {
            use(200);
            _exit(before == i + 1 && after == i + 1 ? 42 : 1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 42;
    }
    atomic_store(&stop, 1);
    printf("handlers %d %d, failed %d\n", before, after, failed);
    return 11;
}

static void destroy(void *data) {
    long round = *(long *)data;
    free(data);
    use(100);
    atomic_fetch_add(&destroyed, 1);
    if (round < 3) {
        long *next = malloc(sizeof *next);
        *next = round + 1;
        pthread_setspecific(key, next);
    }
}

static void *with_data(void *unused) {
    long *data = malloc(sizeof *data);
    *data = 0;
    pthread_setspecific(key, data);
    use(100);
    return unused;
}

static int keys(void) {
    pthread_t threads[20];
    pthread_key_create(&key, destroy);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 20; i++) pthread_create(&threads[i], NULL, with_data, NULL);
        for (int i = 0; i < 20; i++) pthread_join(threads[i], NULL);
    }
    printf("destroyed %d\n", destroyed);
    return 12;
}

static int daemonise(void) {
    int ends[2];
    char report[64] = {0};
    if (pipe(ends)) return 1;
    if (fork() == 0) {
        setsid();
        if (fork() != 0) _exit(0);
        umask(0);
        if (chdir("/")) _exit(1);
        close(0), close(1), close(2);
        open("/dev/null", O_RDWR), dup(0), dup(0);
        start(2, 500);
        use(20000);
        dprintf(ends[1], "worked, next descriptor %s", dup(0) == ends[1] + 1 ? "as expected" : "another");
        exit(0);
    }
    close(ends[1]);
    while (wait(NULL) > 0) continue;
    for (ssize_t count, at = 0; (count = read(ends[0], report + at, sizeof report - 1 - at)) > 0;) at += count;
    puts(report);
    return 13;
}

static int nofile(void) {
    struct rlimit none = {3, 3};
    if (setrlimit(RLIMIT_NOFILE, &none)) return 1;
    start(2, 300);
    use(20000);
    int opened = open("/dev/null", O_RDONLY);
    printf("open %d, %d\n", opened, errno);
    return 14;
}

static int closing(void) {
    for (int round = 0; round < 2; round++) {
        for (int fd = 3; fd < 4096; fd++) close(fd);
        int numbers[8];
        for (int i = 0; i < 8; i++) printf("%d ", numbers[i] = open("/dev/zero", O_RDONLY));
        use(20000);
        char zero[16] = {1};
        for (int i = 0; i < 8; i++) printf("%zd%d ", read(numbers[i], zero, 16), zero[0]);
        puts("");
        syscall(SYS_close_range, 3, ~0U, 0);
        start(2, 300);
    }
    return 15;
}

static int dumpable(void) {
    prctl(PR_SET_DUMPABLE, 0);
    start(3, 300);
    use(20000);
    printf("dumpable %d\n", prctl(PR_GET_DUMPABLE));
    return 16;
}

static int identity(void) {
    start(2, -1);
    for (int id = 65530; id < 65534; id++) {
        int refused = setegid(id) || seteuid(id);
        use(3000);
        printf("%d %d %d\n", refused, geteuid(), getegid());
        if (seteuid(0) || setegid(0)) puts("not back");
    }
    int refused = setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534);
    use(3000);
    printf("%d %d %d\n", refused, geteuid(), getegid());
    atomic_store(&stop, 1);
    return 17;
}

static void *replace(void *path) {
    use(1000);
    execl(path, path, "dumpable", NULL);
    return NULL;
}

static void *call_exit(void *unused) {
    use(1000);
    exit(19);
    return unused;
}

static void at_end(void) {
    use(5000);
    puts("handler");
    fflush(stdout);
}

static void *late(void *unused) {
    use(20000);
    puts("last");
    fflush(stdout);
    atomic_store(&stop, 1);
    return unused;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    pthread_t thread;
    if (!strcmp(mode, "atfork")) return forks();
    if (!strcmp(mode, "keys")) return keys();
    if (!strcmp(mode, "daemon")) return daemonise();
    if (!strcmp(mode, "nofile")) return nofile();
    if (!strcmp(mode, "closing")) return closing();
    if (!strcmp(mode, "dumpable")) return dumpable();
    if (!strcmp(mode, "identity")) return identity();
    puts("begins");
    fflush(stdout);
    start(4, -1);
    use(5000);
    if (!strcmp(mode, "execute")) pthread_create(&thread, NULL, replace, argv[0]), pthread_join(thread, NULL);
    atexit(at_end);
    if (!strcmp(mode, "exit")) exit(18);
    if (!strcmp(mode, "thread")) pthread_create(&thread, NULL, call_exit, NULL), pause();
    at_quick_exit(at_end);
    if (!strcmp(mode, "quick")) quick_exit(20);
    if (!strcmp(mode, "under")) _exit(21);
    if (!strcmp(mode, "abort")) prctl(PR_SET_DUMPABLE, 0), abort();
    if (!strcmp(mode, "kill")) raise(SIGTERM);
    if (!strcmp(mode, "leave")) pthread_create(&thread, NULL, late, NULL), pthread_exit(NULL);
    return 99;
}
