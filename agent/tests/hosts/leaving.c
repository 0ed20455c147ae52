/* Leaves what it was started with, as services do. usage: leaving WAY…; prints `ready`, then after each line on its
 * standard input takes the next way and answers `done`.
 *   root       makes an empty directory its root
 *   user       becomes another user
 *   files      closes all descriptors but the standard ones
 *   namespace  goes to a mount and a user namespace of its own
 *   entered    enters a mount namespace with setns, which the kernel refuses to processes of several threads
 *   directory  goes to a directory and removes it
 *   memory     may have no more memory than it has */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int leave(const char *way) {
    char directory[] = "/tmp/leavingXXXXXX";
    if (!strcmp(way, "root")) return !mkdtemp(directory) || chroot(directory) || chdir("/");
    if (!strcmp(way, "user")) return setgroups(0, NULL) || setgid(65534) || setuid(65534);
    if (!strcmp(way, "namespace")) return unshare(CLONE_NEWUSER | CLONE_NEWNS);
    if (!strcmp(way, "entered")) {
        int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), refused = setns(own, CLONE_NEWNS);
        close(own);
        return refused;
    }
    if (!strcmp(way, "directory")) return !mkdtemp(directory) || chdir(directory) || rmdir(directory);
    if (!strcmp(way, "memory")) {
        struct rlimit limit = {64 << 20, 64 << 20};
        return setrlimit(RLIMIT_AS, &limit);
    }
    if (!strcmp(way, "files")) {
        closefrom(3);
        return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    char line[64];
    static void *kept[2000];
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    for (int i = 1; i < argc && fgets(line, sizeof line, stdin); i++) {
        if (leave(argv[i])) {
            perror(argv[i]);
            puts("refused");
            continue;
        }
        for (int k = 0; k < 2000; k++) {
            free(kept[k]);
            kept[k] = malloc(k * 3 + 1);
        }
        puts("done");
    }
    while (fgets(line, sizeof line, stdin)) puts("alive");
    return 9;
}
