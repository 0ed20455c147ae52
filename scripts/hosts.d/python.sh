# shellcheck shell=bash disable=SC2034,SC2154
what='python3: -m json.tool, threads, multiprocessing, ctypes'
quick=yes
needs=(/usr/bin/python3 python3)
binaries=(/usr/bin/python3)

workload() {
    "${guest[@]}" /usr/bin/python3 -c 'import json; print(json.dumps([{"n": i, "s": "ä" * (i % 50)} for i in range(60000)]))' >big.json
    "${guest[@]}" /usr/bin/python3 -m json.tool --sort-keys big.json | md5sum
    echo '{"cut": ' | "${guest[@]}" /usr/bin/python3 -m json.tool
    echo "status $?"
    "${guest[@]}" /usr/bin/python3 "$root/testdata/hosts/threads.py"
}
