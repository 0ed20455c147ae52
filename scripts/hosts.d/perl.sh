# shellcheck shell=bash disable=SC2034,SC2154
what='perl: 40 forks that allocate on both sides, pipes, sort, regex'
quick=yes
needs=(perl perl)
binaries=(perl)

workload() { "${guest[@]}" perl "$root/testdata/hosts/fork.pl"; }
