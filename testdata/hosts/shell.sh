#!/usr/bin/env bash
# What shell scripts do to processes: pipes, subshells, background jobs, traps, a coprocess, and every way to end.
trap 'echo "trapped USR1"' USR1
trap 'echo "exit trap, status $?"' EXIT

printf '%s\n' {1..2000} | sort -rn | awk '{ s += $1 } END { print "sum", s }'
kill -USR1 $$
jobs=() failures=0
for i in 1 2 3 4 5 6 7 8; do (exit "$i") & jobs+=($!); done
for job in "${jobs[@]}"; do wait "$job" || failures=$((failures + $?)); done
echo "statuses of eight jobs add up to $failures"

coproc CAT { cat; }
echo "through a coprocess" >&"${CAT[1]}"
read -r line <&"${CAT[0]}"
echo "$line"
eval "exec ${CAT[1]}>&-"
wait "$CAT_PID"

bash -c 'kill -TERM $$'; echo "ended by a signal: $?"
bash -c 'ulimit -n 12; for i in $(seq 50); do echo -n x; done; echo'
bash -c 'yes | head -1; echo "${PIPESTATUS[@]}"'
text=''
for i in $(seq 3000); do text+="line $i"$'\n'; done
md5sum <<<"$text"
echo "descriptors that a child inherits: $(env -u LD_PRELOAD find /proc/self/fd -type l | wc -l)"
exec 3<<<"here"
cat <&3
exit 7
