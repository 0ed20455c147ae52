# shellcheck shell=bash disable=SC2034,SC2154
what='sqlite3: joins, indices, JSON, window functions, WAL, VACUUM'
quick=yes
needs=(sqlite3 sqlite3)
binaries=(sqlite3)

workload() {
    "${guest[@]}" sqlite3 -bail data.db <"$root/testdata/hosts/work.sql"
    echo "status $?"
    "${guest[@]}" sqlite3 data.db .dump | md5sum
    "${guest[@]}" sqlite3 :memory: 'select no_such_function();'
    echo "status $?"
}
