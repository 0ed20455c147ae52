/* Forbids, after it was started, everything that a sandboxed worker needs no more; then allocates from many threads.
 * usage: sandboxed refuse|kill|alone|fork; prints `ready`, waits for a line, prints `done`
 *   refuse  by an error, in all threads, what only the agent needs
 *   kill    by death, in all threads, everything that is not on a short list
 *   alone   the same by prctl, in the calling thread and those that it starts
 *   fork    the same in a forked child */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ON(name, answer) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, answer)
#define REFUSE(name) ON(name, SECCOMP_RET_ERRNO | EPERM)
#define ALLOW(name) ON(name, SECCOMP_RET_ALLOW)
#define LENGTH(array) (sizeof array / sizeof *array)

static struct sock_filter refuse[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    REFUSE(process_vm_readv), REFUSE(memfd_create), REFUSE(openat), REFUSE(socket), REFUSE(accept4),
    REFUSE(ptrace), REFUSE(sendfile), REFUSE(getdents64),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
static struct sock_filter kill_others[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(read), ALLOW(write), ALLOW(mmap), ALLOW(munmap), ALLOW(mprotect), ALLOW(madvise), ALLOW(brk), ALLOW(futex),
    ALLOW(clone), ALLOW(clone3), ALLOW(set_robust_list), ALLOW(rseq), ALLOW(exit), ALLOW(exit_group), ALLOW(rt_sigaction),
    ALLOW(newfstatat), ALLOW(lseek),
    // What pthread_create needs besides, but not the invalid call by which the unwinder probes a page.
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_rt_sigprocmask, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 2, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

static void *churn(void *unused) {
    for (int i = 0; i < 20000; i++) free(malloc(1 + i % 3000));
    return unused;
}

static int enter(const char *mode) {
    struct sock_fprog program = {LENGTH(kill_others), kill_others};
    if (!strcmp(mode, "refuse")) program = (struct sock_fprog){LENGTH(refuse), refuse};
    // A program that asks whether there are filters at all.
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) != -1 || errno != EFAULT) return 1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 1;
    if (!strcmp(mode, "alone")) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static int work(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, churn, NULL)) return 1;
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "refuse";
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    getchar();
    if (!strcmp(mode, "fork")) {
        int status;
        if (fork() == 0) exit(enter(mode) || work() ? 1 : 8);
        wait(&status);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 8) { printf("child: %d\n", status); return 1; }
    } else if (enter(mode)) {
        perror("seccomp");
        return 1;
    }
    if (work()) return 2;
    puts("done");
    while (getchar() != EOF) {}
    return 8;
}
