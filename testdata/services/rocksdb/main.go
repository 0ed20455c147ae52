// A service that stores events in RocksDB through its C API, and forgets to destroy the batches of its export handler.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// truth is what the service knows about its own off-heap memory and its work.
type truth struct {
	ExportedBatches int64 `json:"exported_batches"`
	ExportedBytes   int64 `json:"exported_bytes"`
	WrittenBatches  int64 `json:"written_batches"`
}

var known truth

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	dir := flag.String("db", "", "directory of the database; a temporary one by default")
	writers := flag.Int("writers", 4, "goroutines that write batches")
	pause := flag.Duration("pause", time.Millisecond, "pause of a writer after each batch; 0 writes as fast as it can")
	batches := flag.Int64("batches", 0, "stop after so many batches and print the rate; 0 runs until killed")
	flag.Parse()

	if *dir == "" {
		temporary, err := os.MkdirTemp("", "rocksdb-service-")
		if err != nil {
			log.Fatal(err)
		}
		defer os.RemoveAll(temporary)
		*dir = temporary
	}
	db, err := openStore(*dir)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/export", func(w http.ResponseWriter, r *http.Request) { handleExport(w, r) })
	http.HandleFunc("/read", func(w http.ResponseWriter, r *http.Request) { handleRead(db, w, r) })
	http.HandleFunc("/truth", handleTruth)
	fmt.Printf("listening http://%s\n", listener.Addr())
	go func() { log.Fatal(http.Serve(listener, nil)) }()

	started := time.Now()
	var wait sync.WaitGroup
	for i := 0; i < *writers; i++ {
		wait.Add(1)
		go func(writer int) {
			defer wait.Done()
			writeEvents(db, writer, *pause, *batches)
		}(i)
	}
	if *batches == 0 {
		select {}
	}
	wait.Wait()
	fmt.Printf("%.0f batches/s\n", float64(known.WrittenBatches)/time.Since(started).Seconds())
	db.close()
}

// writeEvents writes batches of events until limit batches stand in the store (0: for ever).
func writeEvents(db *store, writer int, pause time.Duration, limit int64) {
	value := make([]byte, 400)
	for sequence := 0; ; sequence++ {
		if written := atomic.AddInt64(&known.WrittenBatches, 1); limit > 0 && written > limit {
			atomic.AddInt64(&known.WrittenBatches, -1)
			return
		}
		batch := newBatch()
		for i := 0; i < 50; i++ {
			batch.put([]byte(fmt.Sprintf("event/%d/%d/%d", writer, sequence%2000, i)), value)
		}
		if err := db.write(batch); err != nil {
			log.Fatal(err)
		}
		batch.destroy()
		if pause > 0 {
			time.Sleep(pause)
		}
	}
}

// handleExport builds a batch for another store and forgets to destroy it: the leak.
func handleExport(w http.ResponseWriter, r *http.Request) {
	for i := number(r, "n", 1); i > 0; i-- {
		batch := newBatch()
		value := make([]byte, 1000)
		for k := 0; k < 64; k++ {
			batch.put([]byte("export/"+strconv.Itoa(k)), value)
		}
		atomic.AddInt64(&known.ExportedBatches, 1)
		atomic.AddInt64(&known.ExportedBytes, int64(batch.size()))
	}
	fmt.Fprintln(w, "exported")
}

// handleRead reads one event and gives everything back.
func handleRead(db *store, w http.ResponseWriter, r *http.Request) {
	value, err := db.get([]byte(fmt.Sprintf("event/0/%d/0", number(r, "n", 0))))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, len(value))
}

func handleTruth(w http.ResponseWriter, _ *http.Request) {
	json.NewEncoder(w).Encode(truth{
		ExportedBatches: atomic.LoadInt64(&known.ExportedBatches),
		ExportedBytes:   atomic.LoadInt64(&known.ExportedBytes),
		WrittenBatches:  atomic.LoadInt64(&known.WrittenBatches),
	})
}

func number(r *http.Request, name string, otherwise int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
		return n
	}
	return otherwise
}
