package main

import (
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

var cache [][]byte

// handleCache keeps Go memory for ever.
func handleCache(w http.ResponseWriter, r *http.Request) {
	for left := megabytes(r); left > 0; left -= 1 << 16 {
		b := make([]byte, 1<<16)
		for i := range b {
			b[i] = 1
		}
		cache = append(cache, b)
		atomic.AddInt64(&planted, 1<<16)
	}
	fmt.Fprintln(w, "cached")
}

// handleReport builds a large report in Go memory and drops it. With the heap allowed to grow ninefold the runtime
// keeps the pages: idle spans stay resident up to the next heap goal.
func handleReport(w http.ResponseWriter, r *http.Request) {
	debug.SetGCPercent(800)
	size := megabytes(r)
	if cache == nil {
		handleCache(w, r.Clone(r.Context()))
		planted = 0
	}
	report := make([][]byte, 0, 8*size>>16)
	for left := 8 * size; left > 0; left -= 1 << 16 {
		b := make([]byte, 1<<16)
		for i := range b {
			b[i] = 1
		}
		report = append(report, b)
	}
	fmt.Fprintln(w, "reported", len(report))
	report = nil
	runtime.GC()
	atomic.AddInt64(&planted, int64(8*size))
}
