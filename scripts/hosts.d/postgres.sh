# shellcheck shell=bash disable=SC2034,SC2154
what='PostgreSQL: initdb, parallel queries and pgbench, as its own user'
quick=no
limit=900
needs=('/usr/lib/postgresql/*/bin/postgres' postgresql '/usr/lib/postgresql/*/bin/pgbench' postgresql setpriv util-linux)
binaries=('/usr/lib/postgresql/*/bin/postgres')

workload() {
    local bin as=()
    bin=$(dirname "$(compgen -G '/usr/lib/postgresql/*/bin/postgres' | sort -V | tail -1)")
    # It refuses to run as root.
    if [ "$(id -u)" = 0 ]; then
        chown postgres .
        as=(setpriv --reuid=postgres --regid=postgres --init-groups --)
    fi
    "${as[@]}" "${guest[@]}" "$bin/initdb" -D data -A trust -U postgres --no-sync --locale=C -E UTF8 >initdb.log 2>&1 || { cat initdb.log; return 1; }
    "${as[@]}" "${guest[@]}" "$bin/postgres" -D data -k "$PWD" -h '' -c fsync=off -c max_parallel_workers_per_gather=2 \
        -c min_parallel_table_scan_size=0 -c parallel_setup_cost=0 -c jit_above_cost=1 >server.log 2>&1 &
    server=$!
    trap 'kill -INT "$server" 2>/dev/null; wait "$server" 2>/dev/null' EXIT
    until "$bin/pg_isready" -q -h "$PWD"; do kill -0 "$server" || { cat server.log; return 1; }; sleep 0.1; done
    export PGHOST=$PWD PGUSER=postgres PGDATABASE=postgres
    "${guest[@]}" "$bin/pgbench" -i -s 4 -q >/dev/null 2>&1 || return
    # With one seed the clients draw the same numbers every time, and sums do not depend on the order.
    "${guest[@]}" "$bin/pgbench" -n -c 6 -j 2 -t 500 --random-seed=7 2>&1 | grep -E 'actually processed|failed transactions'
    "$bin/psql" -qAtX <<'SQL'
select sum(abalance), count(*) from pgbench_accounts;
select sum(tbalance), sum(bbalance), (select count(*) from pgbench_history) from pgbench_tellers, pgbench_branches;
select md5(string_agg(md5(aid::text || filler), '' order by aid)) from pgbench_accounts where aid % 7 = 0;
create table words as select i, md5(i::text) w from generate_series(1, 200000) i;
create index on words using gin (string_to_array(w, 'a'));
select count(*), max(length(w || w)) from words a join words b using (w);
select w from words where w like '%beef%' order by w limit 3;
select 1 / 0;
vacuum full analyze;
select count(*) from words;
SQL
    kill -INT "$server"
    wait "$server"
    echo "server $?"
    grep -cE 'PANIC|terminated by signal' server.log
    trap - EXIT
}
