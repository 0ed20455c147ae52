# shellcheck shell=bash disable=SC2034,SC2154
what='redis-server under redis-benchmark, BGSAVE and AOF rewrite in it'
quick=yes
limit=300
needs=(redis-server redis-server redis-benchmark redis-tools)
binaries=(redis-server)

workload() {
    local requests=150000
    if [ "$quick_run" = yes ]; then requests=10000; fi
    "${guest[@]}" redis-server --port 0 --unixsocket "$PWD/r" --save '' --appendonly yes --dir "$PWD" --daemonize no \
        --io-threads 2 >server.log 2>&1 &
    server=$!
    trap 'kill "$server" 2>/dev/null; wait "$server" 2>/dev/null' EXIT
    local redis=(redis-cli -s r)
    until "${redis[@]}" ping >/dev/null 2>&1; do kill -0 "$server" || { cat server.log; return 1; }; sleep 0.05; done
    redis-benchmark -s r -q -n "$requests" -c 50 -P 8 -t set,get,incr,lpush,rpush,lpop,sadd,hset,zadd,lrange_100,mset >benchmark.log 2>&1 || return
    # The benchmark's keys are fixed; how often each was hit is, too, but not the order.
    "${redis[@]}" eval 'for i = 1, 60000 do redis.call("set", "key:" .. i, string.rep("v", i % 700)) end return redis.call("dbsize")' 0
    "${redis[@]}" eval 'for i = 1, 60000, 3 do redis.call("del", "key:" .. i) end return redis.call("dbsize")' 0
    save() { # save COMMAND FIELD: start it and wait until it is over, under load
        "${redis[@]}" "$1" >/dev/null
        redis-benchmark -s r -q -n $((requests / 5)) -c 20 -t set,get >>benchmark.log 2>&1
        while "${redis[@]}" info persistence | grep -Eq "^($2):1"; do sleep 0.05; done
        "${redis[@]}" info persistence | grep -E '^(rdb_last_bgsave_status|aof_last_bgrewrite_status)' | tr -d '\r'
    }
    save bgsave rdb_bgsave_in_progress
    save bgrewriteaof 'aof_rewrite_in_progress|aof_rewrite_scheduled'
    "${redis[@]}" --raw eval 'local n = 0 for i = 1, 60000 do n = n + redis.call("strlen", "key:" .. i) end return n' 0
    "${redis[@]}" info errorstats | grep -c errorstat_
    "${redis[@]}" memory malloc-stats | head -1
    "${redis[@]}" memory purge
    "${redis[@]}" shutdown nosave
    wait "$server"
    echo "server $?"
    redis-check-rdb dump.rdb | grep -c 'RDB looks OK'
    redis-check-aof appendonlydir/appendonly.aof.manifest | grep -c 'are valid'
}
