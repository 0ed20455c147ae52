# shellcheck shell=bash disable=SC2034,SC2154
what='go build of the RocksDB service: gcc and ld under the agent'
limit=400
needs=(go golang-go gcc gcc /usr/include/rocksdb/c.h librocksdb-dev)
binaries=(gcc ld)

workload() {
    # Packages without cgo come from a cache that one build outside has filled; with other flags for C, those with cgo are
    # compiled anew. Both runs start from a copy of that cache and must give the same binary.
    local cache=$target/hosts/go-cache
    cd "$root/testdata/services/rocksdb" || return
    GOCACHE=$cache go build -buildvcs=false -o /dev/null . || return
    cp -a "$cache" "$OLDPWD/cache" || return
    GOCACHE=$OLDPWD/cache CGO_CFLAGS='-O1 -g -fno-plt' "${guest[@]}" go build -trimpath -buildvcs=false -o "$OLDPWD/service" . || return
    md5sum <"$OLDPWD/service"
}
