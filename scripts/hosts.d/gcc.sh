# shellcheck shell=bash disable=SC2034,SC2154
what='gcc and g++ -O2 -g on a large file each: identical objects'
quick=yes
limit=600
needs=(gcc gcc g++ g++)
binaries=(gcc as ld)

workload() {
    local functions=400 depth=12
    if [ "$quick_run" = yes ]; then functions=100 depth=3; fi
    awk -v n="$functions" 'BEGIN {
        print "#include <stdio.h>\n#include <string.h>"
        for (i = 0; i < n; i++) {
            printf "static int f%d(int x, const char *s) { int a[16] = {0}; switch (x & 7) {\n", i
            for (j = 0; j < 8; j++) printf "case %d: for (int k = 0; k < x; k++) a[k & 15] += k * %d + (int)strlen(s); break;\n", j, i + j
            print "} int t = 0; for (int k = 0; k < 16; k++) t ^= a[k]; return t; }"
        }
        print "int main(void) { int t = 0;"
        for (i = 0; i < n; i++) printf "t += f%d(t + %d, \"%d\");\n", i, i, i
        print "printf(\"%d\\n\", t & 1023); return 0; }"
    }' >large.c
    "${guest[@]}" gcc -O2 -g -ffile-prefix-map="$PWD"=. -c large.c -o large.o || return
    md5sum <large.o
    "${guest[@]}" gcc large.o -o large && ./large
    "${guest[@]}" g++ -std=c++17 -O2 -g -ffile-prefix-map="$PWD"=. -D DEPTH="$depth" -c "$root/testdata/hosts/heavy.cpp" -o heavy.o || return
    md5sum <heavy.o
    "${guest[@]}" gcc -c -x c - <<<'int main(void) { return undeclared; }'
    echo "status $?"
}
