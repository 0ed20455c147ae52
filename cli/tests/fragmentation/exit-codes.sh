#!/bin/sh
# The exit codes of `offheap check`, as a script uses them. Prints each with the line that came with it.
# usage: exit-codes.sh OFFHEAP FRAGMENTED HEALTHY GO_HEAP STATE_FILE
set -u
offheap=$1 fragmented=$2 healthy=$3 go_heap=$4 state=$5

# expect CODE ARGUMENTS…: run check, demand this code.
expect() {
    expected=$1
    shift
    line=$("$offheap" check "$@")
    code=$?
    echo "$code $line"
    if [ "$code" -ne "$expected" ]; then
        echo "check $*: expected $expected" >&2
        exit 1
    fi
}

# 0 OK: not fragmented; told at once, however long the condition would have to hold.
expect 0 "$healthy" --min-rss 1MB
# 0 OK: fragmented, but the process is small.
expect 0 "$fragmented" --min-rss 100GB --for 0
# 1 WARNING: fragmented now, and for two seconds.
expect 1 "$fragmented" --min-rss 1MB --for 0
expect 1 "$fragmented" --min-rss 1MB --for 2s --every 500ms
# A timer instead of waiting: pending first, then WARNING. The condition is awaited, not the time.
expect 0 "$fragmented" --min-rss 1MB --for 1s --state "$state"
tries=0
until "$offheap" check "$fragmented" --min-rss 1MB --for 1s --state "$state" >/dev/null; [ $? -eq 1 ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || { echo "never WARNING" >&2; exit 1; }
    sleep 0.1
done
expect 1 "$fragmented" --min-rss 1MB --for 1s --state "$state"
# 2 CRITICAL: RSS is a multiple of the Go heap.
expect 2 "$fragmented" --min-rss 1MB --for 0 --go "$go_heap" --go-ratio 0.01 --go-min-rss 1MB
# 3 UNKNOWN: nobody there; a Go heap that cannot be read; a mistyped option.
expect 3 "$fragmented.gone" --for 0
expect 3 "$healthy" --for 0 --go "$go_heap.gone"
expect 3 "$healthy" --forr 0
