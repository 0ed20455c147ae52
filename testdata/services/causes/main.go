// A service with one planted cause of growing RSS, chosen by -cause. Each request to /step plants more of it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
)

// planted is the number of bytes that the cause holds, as far as the program can know.
var planted int64

var causes = map[string]http.HandlerFunc{
	"c-leak":        handleImport,
	"go-leak":       handleCache,
	"fragmentation": handleSessions,
	"go-idle":       handleReport,
	"mmap":          handleArena,
	"healthy":       handleWork,
}

func main() {
	names := make([]string, 0, len(causes))
	for name := range causes {
		names = append(names, name)
	}
	sort.Strings(names)
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	cause := flag.String("cause", "healthy", strings.Join(names, ", "))
	flag.Parse()
	step, ok := causes[*cause]
	if !ok {
		log.Fatalf("no cause %q; there are %s", *cause, strings.Join(names, ", "))
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/step", step)
	http.HandleFunc("/gc", func(w http.ResponseWriter, _ *http.Request) { runtime.GC(); fmt.Fprintln(w, "ok") })
	http.HandleFunc("/truth", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]interface{}{"cause": *cause, "planted": atomic.LoadInt64(&planted)})
	})
	fmt.Printf("listening http://%s\n", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}

// megabytes is the size of a step in bytes.
func megabytes(r *http.Request) int {
	if n, err := strconv.Atoi(r.URL.Query().Get("mb")); err == nil {
		return n << 20
	}
	return 1 << 20
}
