// A C++ program without Go: two functions keep memory, one of them behind an inlined helper.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace store {

struct Record {
    std::string key;
    std::vector<char> value;
};

static inline std::vector<char> filled(size_t size) { return std::vector<char>(size, 'v'); }

class Table {
public:
    __attribute__((noinline)) void insert(int i, size_t size) {
        records_[i] = Record{"record-" + std::to_string(i), filled(size)};
    }
    size_t size() const { return records_.size(); }

private:
    std::map<int, Record> records_;
};

} // namespace store

static char *volatile kept;

__attribute__((noinline)) static void keep_buffers(int n) {
    for (int i = 0; i < n; i++)
        kept = new char[10000];
}

int main(int argc, char **argv) {
    int n = argc > 1 ? std::atoi(argv[1]) : 1000;
    store::Table table;
    for (int i = 0; i < n; i++)
        table.insert(i, 4000);
    keep_buffers(n);
    std::printf("ready %zu\n", table.size());
    std::fflush(stdout);
    pause();
}
