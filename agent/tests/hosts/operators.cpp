// C++'s operators, mixed with C's functions as old code mixes them, and what they do when memory runs out.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

struct alignas(128) Aligned {
    char bytes[200];
};

static int calls;
static void handler() {
    if (++calls == 3) std::set_new_handler(nullptr);
}

int main() {
    int wrong = 0;
    for (int i = 0; i < 2000; i++) {
        void *mixed = ::operator new(100 + i);
        memset(mixed, 1, 100 + i);
        free(mixed);
        ::operator delete(malloc(10 + i));
        delete new std::string(i, 'x');
        auto *several = new Aligned[3];
        wrong += reinterpret_cast<uintptr_t>(several) % 128 != 0;
        delete[] several;
        ::operator delete(::operator new(i, std::align_val_t(64)), i, std::align_val_t(64));
        ::operator delete[](::operator new[](0));
        delete static_cast<int *>(nullptr);
    }
    volatile size_t huge = size_t(1) << 62;
    printf("%d wrong, nothrow %d\n", wrong, ::operator new(huge, std::nothrow) == nullptr);
    try {
        ::operator delete(::operator new(huge));
    } catch (const std::bad_alloc &) {
        puts("bad_alloc");
    }
    std::set_new_handler(handler);
    try {
        ::operator delete(::operator new(huge, std::align_val_t(64)), std::align_val_t(64));
    } catch (const std::bad_alloc &) {
        printf("bad_alloc after %d calls of the handler\n", calls);
    }
    return 5;
}
