# shellcheck shell=bash disable=SC2034,SC2154
what="Go's own cgo tests: runtime/cgo, cmd/cgo, crashes and signals"
limit=1200
needs=(go golang-go gcc gcc)
binaries=(gcc)

workload() {
    local code=0
    # What was compiled once is kept: the test programs are what matters, and those that they start.
    export GOCACHE=$target/hosts/go-cache
    "${guest[@]}" go test -count=1 -json runtime/cgo os/user net/internal/cgotest cmd/cgo/internal/test >events 2>errors || code=$?
    "${guest[@]}" go test -count=1 -json -run 'Cgo|Signal|Crash|Panic' runtime >>events 2>>errors || code=$?
    jq -r 'select(.Test != null and (.Action == "pass" or .Action == "fail" or .Action == "skip")) | "\(.Package) \(.Test) \(.Action)"' events | sort
    cat errors
    return "$code"
}
