// A service whose handlers leak C memory in three ways: a C.CString without C.free, contexts of a C library that are
// never freed, and an allocation in C below a Go callback that C called.
package main

// #cgo LDFLAGS: -lzstd
// #include <stdlib.h>
// #include <zstd.h>
// #include "visit.h"
import "C"

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"
)

// held is what each handler has leaked so far, in bytes that the C library or strlen answers for.
var held struct{ name, compress, visit int64 }

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	flag.Parse()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/name", handleName)
	http.HandleFunc("/compress", handleCompress)
	http.HandleFunc("/visit", handleVisit)
	http.HandleFunc("/truth", handleTruth)
	fmt.Printf("listening http://%s\n", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}

// handleName copies n names of the given size to C and forgets to free them.
func handleName(w http.ResponseWriter, r *http.Request) {
	size := number(r, "size", 1000)
	name := strings.Repeat("x", size)
	for i := number(r, "n", 1); i > 0; i-- {
		C.CString(name)
		atomic.AddInt64(&held.name, int64(size)+1)
	}
	fmt.Fprintln(w, "ok")
}

// handleCompress compresses with n zstd contexts and forgets to free them.
func handleCompress(w http.ResponseWriter, r *http.Request) {
	text := []byte(strings.Repeat("offheap ", 2000))
	out := make([]byte, int(C.ZSTD_compressBound(C.size_t(len(text)))))
	for i := number(r, "n", 1); i > 0; i-- {
		context := C.ZSTD_createCCtx()
		C.ZSTD_compressCCtx(context, unsafe.Pointer(&out[0]), C.size_t(len(out)),
			unsafe.Pointer(&text[0]), C.size_t(len(text)), 3)
		atomic.AddInt64(&held.compress, int64(C.ZSTD_sizeof_CCtx(context)))
	}
	fmt.Fprintln(w, "ok")
}

// handleVisit lets C walk n items and call back into Go for each.
func handleVisit(w http.ResponseWriter, r *http.Request) {
	C.visit_all(C.int(number(r, "n", 1)), C.size_t(number(r, "size", 1000)))
	fmt.Fprintln(w, "ok")
}

// goVisit is called by C for each item; what it allocates in C stays.
//
//export goVisit
func goVisit(size C.size_t) {
	C.visit_keep(size)
	atomic.AddInt64(&held.visit, int64(size))
}

func handleTruth(w http.ResponseWriter, _ *http.Request) {
	json.NewEncoder(w).Encode(map[string]int64{
		"main.handleName":     atomic.LoadInt64(&held.name),
		"main.handleCompress": atomic.LoadInt64(&held.compress),
		"main.handleVisit":    atomic.LoadInt64(&held.visit),
	})
}

func number(r *http.Request, name string, otherwise int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
		return n
	}
	return otherwise
}
