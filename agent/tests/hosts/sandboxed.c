// Forbids, after it was started, everything that a sandboxed worker needs no more; then allocates from many threads.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REFUSE(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static void *churn(void *unused) {
    for (int i = 0; i < 20000; i++) free(malloc(1 + i % 3000));
    return unused;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    getchar();
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(process_vm_readv), REFUSE(memfd_create), REFUSE(openat), REFUSE(socket), REFUSE(accept4),
        REFUSE(ptrace), REFUSE(sendfile), REFUSE(getdents64),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program)) { perror("seccomp"); return 1; }
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, churn, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    puts("done");
    return 8;
}
