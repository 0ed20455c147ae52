// A short file that costs the compiler much memory: templates of the standard library, instantiated over and over.
#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

template <int N> struct Tree {
    std::map<std::string, std::tuple<std::vector<Tree<N - 1>>, std::variant<int, double, std::string>>> children;
    std::function<int(const Tree &)> weigh = [](const Tree &t) { return static_cast<int>(t.children.size()) * N; };
    int weight() const {
        int total = weigh(*this);
        for (const auto &[name, value] : children)
            for (const auto &child : std::get<0>(value)) total += child.weight() + static_cast<int>(name.size());
        return total;
    }
};
template <> struct Tree<0> {
    int weight() const { return 1; }
};

int main(int argc, char **argv) {
    Tree<DEPTH> tree;
    std::regex pattern("([a-z]+)-(\\d+)", std::regex::icase);
    for (int i = 1; i < argc; i++)
        if (std::regex_match(argv[i], pattern)) tree.children[argv[i]] = {};
    std::unordered_map<std::string, std::vector<std::string>> groups;
    for (int i = 0; i < argc; i++) groups[argv[i]].emplace_back(argv[i]);
    std::vector<std::string> names;
    for (auto &[name, members] : groups) names.push_back(name + std::to_string(members.size()));
    std::stable_sort(names.begin(), names.end());
    return tree.weight();
}
