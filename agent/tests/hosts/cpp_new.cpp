// operator new and delete come from libstdc++, which calls malloc.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

int main() {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    std::vector<std::unique_ptr<char[]>> kept;
    std::puts("ready");
    for (int i = 0; i < 1000; i++) kept.emplace_back(new char[100000]);
    std::puts("allocated");
    std::getchar();
    return 0;
}
