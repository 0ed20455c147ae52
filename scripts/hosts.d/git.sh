# shellcheck shell=bash disable=SC2034,SC2154
what='git: 60 commits, branch and merge, gc, clone over a pipe, fsck'
quick=yes
needs=(git git)
binaries=(git)

workload() {
    export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z' GIT_CONFIG_NOSYSTEM=1
    export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
    local git=("${guest[@]}" git) i
    "${git[@]}" init -q -b main repository || return
    cd repository || return
    for i in $(seq 60); do
        seq "$i" $((i * 50)) >"file$((i % 17))"
        "${git[@]}" add -A && "${git[@]}" commit -q -m "commit $i" || return
    done
    "${git[@]}" checkout -q -b side HEAD~10
    echo side >only-here
    "${git[@]}" add -A && "${git[@]}" commit -q -m side && "${git[@]}" checkout -q main
    "${git[@]}" merge -q -m merge side || return
    "${git[@]}" -c pack.threads=4 gc -q --aggressive
    "${git[@]}" log --graph --stat | md5sum
    "${git[@]}" clone -q --no-local . ../clone
    "${git[@]}" -C ../clone fsck --full --strict 2>&1
    "${git[@]}" -C ../clone rev-parse HEAD
    "${git[@]}" blame file3 | md5sum
}
