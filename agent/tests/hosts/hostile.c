// Stacks that no unwinder likes. Each mode allocates 1000 times from such a stack and prints "done".
//   garbage   code without unwind information, with a frame pointer that names nothing
//   loop      the same with a frame pointer that names itself
//   edge      a stack whose last word is the last of its mapping
//   unmapped  a frame pointer that names a page that was unmapped
//   signal    from a signal handler, on an alternate stack
//   small     threads with the smallest stack that there is
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

void *volatile kept[1000];
int count;

__attribute__((noinline)) void allocate(void) {
    char *p = malloc(5000);
    memset(p, 1, 5000);
    kept[count++ % 1000] = p;
}

// void with_frame_pointer(void *frame_pointer): calls allocate() with it, and says nothing about how to unwind.
#if defined(__x86_64__)
__asm__(".text\n.globl with_frame_pointer\nwith_frame_pointer:\n"
        "push %rbp\nmov %rdi, %rbp\nsub $0x10, %rsp\ncall allocate\nadd $0x10, %rsp\npop %rbp\nret\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl with_frame_pointer\nwith_frame_pointer:\n"
        "stp x29, x30, [sp, #-16]!\nmov x29, x0\nbl allocate\nldp x29, x30, [sp], #16\nret\n");
#endif
void with_frame_pointer(void *frame_pointer);

static ucontext_t back, there;

static void on_edge(void) {
    for (int i = 0; i < 1000; i++) allocate();
    setcontext(&back);
}

static void handler(int signal) { (void)signal; allocate(); }

static void *small(void *unused) { allocate(); return unused; }

static void *unmapped(void *hole) {
    for (int i = 0; i < 500; i++) with_frame_pointer(hole);
    for (int i = 0; i < 500; i++) with_frame_pointer((char *)hole - 8);
    return NULL;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    long page = sysconf(_SC_PAGESIZE);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(two + page, page);
    if (!strcmp(mode, "garbage")) {
        const unsigned long values[] = {0, 8, 0xdeadbeef, 0x7fffffffffff, 0xffff800000000000, ~0ul, ~7ul, 0x1234567890abcdef};
        for (int i = 0; i < 1000; i++) with_frame_pointer((void *)values[i % 8]);
    } else if (!strcmp(mode, "loop")) {
        void *self[2] = {self, (void *)allocate};
        for (int i = 0; i < 1000; i++) with_frame_pointer(self);
    } else if (!strcmp(mode, "unmapped")) {
        // On a thread, whose stack is below: a frame pointer below the stack pointer would not be read at all.
        pthread_t thread;
        pthread_create(&thread, NULL, unmapped, two + page);
        pthread_join(thread, NULL);
    } else if (!strcmp(mode, "edge")) {
        char *stack = mmap(NULL, 65 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(stack + 64 * page, page);
        getcontext(&there);
        there.uc_stack.ss_sp = stack;
        there.uc_stack.ss_size = 64 * page;
        makecontext(&there, on_edge, 0);
        swapcontext(&back, &there);
    } else if (!strcmp(mode, "signal")) {
        stack_t alternate = {.ss_sp = malloc(64 * page), .ss_size = 64 * page};
        sigaltstack(&alternate, NULL);
        struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
        sigaction(SIGUSR1, &action, NULL);
        for (int i = 0; i < 1000; i++) raise(SIGUSR1);
    } else if (!strcmp(mode, "small")) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN + 16384);
        for (int i = 0; i < 200; i++) {
            pthread_t thread;
            if (pthread_create(&thread, &attributes, small, NULL)) return 1;
            pthread_join(thread, NULL);
        }
    }
    puts("done");
    getchar();
    return 0;
}
