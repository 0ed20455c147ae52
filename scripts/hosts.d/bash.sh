# shellcheck shell=bash disable=SC2034,SC2154
what='bash: subshells, pipes, traps, jobs, a coprocess, signals'
quick=yes
binaries=(bash)

workload() {
    "${guest[@]}" bash "$root/testdata/hosts/shell.sh"
    # The script ends with 7 on purpose.
    echo "status $?"
}
