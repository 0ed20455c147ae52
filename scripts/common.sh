# Sourced by the other scripts: where things are, and how services are built and awaited.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
PATH=$PATH:/usr/local/go/bin:/usr/lib/go/bin
export PATH

# build_service NAME OUT [GO BUILD FLAGS…]: build testdata/services/NAME.
build_service() {
    local name=$1 out=$2
    shift 2
    (cd "$root/testdata/services/$name" && go build -buildvcs=false "$@" -o "$out" .)
}

# await FILE PATTERN: wait up to a minute for a line that matches, print it.
await() {
    local file=$1 pattern=$2 _
    for _ in $(seq 600); do
        grep -m1 -- "$pattern" "$file" 2>/dev/null && return 0
        sleep 0.1
    done
    echo "no line '$pattern' in $file after a minute; it says:" >&2
    cat "$file" >&2
    return 1
}

# What took long to build and is no part of the target folder: RocksDB with debug information, other tools.
cache_folder() {
    local folder=${OFFHEAP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/offheap}
    mkdir -p "$folder"
    echo "$folder"
}

# measure COMMAND…: run it with its output thrown away; print wall time in seconds and the peak memory in MiB of the
# largest process that it consists of.
measure() {
    python3 -c '
import resource, subprocess, sys, time
started = time.monotonic()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
took = time.monotonic() - started
print(f"{took:.4f} {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.1f}")
' "$@"
}
