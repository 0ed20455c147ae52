module offheap.dev/bench/cgo

go 1.19
