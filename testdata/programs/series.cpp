// Three dumps of one process: records that come and stay, buffers that leak faster each time, and a cache that goes.
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <string>
#include <vector>

struct Record {
    std::string key;
    std::vector<char> value;
};

static std::map<int, Record> records;
static char *volatile leaked;

__attribute__((noinline)) static void insert(int key) {
    records[key] = Record{"record-" + std::to_string(key), std::vector<char>(4000, 'v')};
}

__attribute__((noinline)) static void leak(int count) {
    for (int i = 0; i < count; i++)
        leaked = new char[10000];
}

__attribute__((noinline)) static std::vector<char> cache() { return std::vector<char>(3 << 20, 'c'); }

using Mallctl = int (*)(const char *, void *, size_t *, void *, size_t);

int main() {
    auto mallctl = reinterpret_cast<Mallctl>(dlsym(RTLD_DEFAULT, "mallctl"));
    if (!mallctl) {
        std::fprintf(stderr, "not under jemalloc\n");
        return 1;
    }
    std::vector<char> kept = cache();
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < 1000; i++)
            insert(round * 1000 + i);
        leak(500 * round);
        if (round == 3)
            std::vector<char>().swap(kept);
        if (mallctl("prof.dump", nullptr, nullptr, nullptr, 0))
            return 2;
    }
}
