# shellcheck shell=bash disable=SC2034,SC2154
what='nginx under wrk: static files, gzip and a proxied location; reload'
quick=yes
needs=(nginx nginx-light wrk wrk)
binaries=(nginx)

workload() {
    local seconds=8 port socket
    if [ "$quick_run" = yes ]; then seconds=1; fi
    mkdir www logs
    chmod 755 . www
    seq 40000 >www/large.txt
    echo small >www/small.txt
    # Workers and, below, a single process that serves by itself: there the agent runs in the process under load.
    for mode in on off; do
        port=$(free_port)
        sed -e "s/PORT/$port/" -e "s/MODE/$mode/" "$root/testdata/hosts/nginx.conf" >nginx.conf
        "${guest[@]}" nginx -p "$PWD" -c nginx.conf -e logs/error.log &
        server=$!
        trap 'kill "$server" 2>/dev/null; wait "$server" 2>/dev/null' EXIT
        until curl -fs "http://127.0.0.1:$port/small.txt" >/dev/null; do kill -0 "$server" || { cat logs/error.log; return 1; }; sleep 0.05; done
        for page in small.txt large.txt proxied/large.txt; do
            curl -fs --compressed "http://127.0.0.1:$port/$page" | md5sum
            # What the load tester complains of, and nothing of what it measured; how long an answer took is a measure.
            wrk -t2 -c40 -d"$((seconds))s" -H 'Accept-Encoding: gzip' "http://127.0.0.1:$port/$page" |
                grep -E 'Socket errors|Non-2xx' | sed 's/, timeout [0-9]*//' | grep -v 'connect 0, read 0, write 0'
        done
        if [ "$mode" = on ]; then
            kill -HUP "$server"
            curl -fs "http://127.0.0.1:$port/small.txt"
        fi
        kill -QUIT "$server"
        wait "$server"
        echo "server $?"
    done
    cat logs/error.log
    trap - EXIT
}
steady() { grep -vE '\[notice\]|\[warn\]'; }
