package main

// #include <stdlib.h>
// #include <string.h>
// #include <sys/mman.h>
//
// static void *filled(size_t size) {
//     void *p = malloc(size);
//     if (p) memset(p, 1, size);
//     return p;
// }
//
// static void *mapped(size_t size) {
//     void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
//     if (p != MAP_FAILED) memset(p, 1, size);
//     return p;
// }
//
// static void **objects(size_t n, size_t size) {
//     void **all = malloc(n * sizeof *all);
//     for (size_t i = 0; all && i < n; i++) all[i] = filled(size);
//     return all;
// }
//
// /* Frees every object but one in keep. */
// static void release(void **all, size_t n, size_t keep) {
//     for (size_t i = 0; i < n; i++)
//         if (i % keep) free(all[i]);
//     free(all);
// }
import "C"

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

// handleImport leaks records of several sizes.
func handleImport(w http.ResponseWriter, r *http.Request) {
	for left := megabytes(r); left > 0; left -= 5000 {
		C.filled(1000)
		C.filled(4000)
		atomic.AddInt64(&planted, 5000)
	}
	fmt.Fprintln(w, "imported")
}

const (
	sessionSize = 448 // bytes, a size class of its own
	sessionKeep = 64  // of so many sessions of a burst one stays: at least one in each slab of 64 regions
)

// handleSessions allocates a burst of sessions and ends nearly all of them: every slab keeps a survivor.
func handleSessions(w http.ResponseWriter, r *http.Request) {
	n := C.size_t(megabytes(r) / sessionSize)
	all := C.objects(n, sessionSize)
	C.release(all, n, sessionKeep)
	atomic.AddInt64(&planted, int64(n/sessionKeep)*sessionSize)
	fmt.Fprintln(w, "served")
}

// handleArena maps memory behind the allocator's back and never unmaps it.
func handleArena(w http.ResponseWriter, r *http.Request) {
	size := megabytes(r)
	C.mapped(C.size_t(size))
	atomic.AddInt64(&planted, int64(size))
	fmt.Fprintln(w, "mapped")
}

// handleWork allocates on both sides and gives everything back.
func handleWork(w http.ResponseWriter, r *http.Request) {
	sum := 0
	for left := megabytes(r); left > 0; left -= 8192 {
		p := C.filled(4096)
		b := make([]byte, 4096)
		b[left%4096] = 1
		sum += len(b)
		C.free(p)
	}
	fmt.Fprintln(w, "worked", sum)
}
