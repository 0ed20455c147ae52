# shellcheck shell=bash disable=SC2034,SC2154
what='ls -lR, find, sort in parallel, tar, env without the agent in it'
quick=yes
binaries=(ls find sort tar env)

workload() {
    "${guest[@]}" ls -lR /usr/share/doc | md5sum
    "${guest[@]}" find /usr/include -type f -name '*.h' -printf '%s %p\n' | sort -n | md5sum
    seq 600000 | shuf --random-source=<(yes) | "${guest[@]}" sort --parallel=4 -S 8M -n | md5sum
    "${guest[@]}" tar -C /usr/include -cf - linux | md5sum
    "${guest[@]}" ls /no/such/folder
    echo "status $?"
    # By default what the host starts is not preloaded, and does not see that its parent was.
    "${guest[@]}" env -u OFFHEAP_CHILDREN sh -c 'env | grep -c LD_PRELOAD'
    "${guest[@]}" env -u OFFHEAP_CHILDREN sh -c 'env | sort | grep -Ev "^(_|HOME|TMPDIR|agent|PWD|OLDPWD|SHLVL|agent_run|sockets|OFFHEAP_.*)="' | md5sum
}
