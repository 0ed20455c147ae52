package main

// #cgo LDFLAGS: -lrocksdb
// #include <stdlib.h>
// #include <rocksdb/c.h>
import "C"

import (
	"errors"
	"unsafe"
)

// store is a RocksDB database.
type store struct {
	db      *C.rocksdb_t
	writing *C.rocksdb_writeoptions_t
	read    *C.rocksdb_readoptions_t
}

func openStore(dir string) (*store, error) {
	options := C.rocksdb_options_create()
	defer C.rocksdb_options_destroy(options)
	C.rocksdb_options_set_create_if_missing(options, 1)
	C.rocksdb_options_set_write_buffer_size(options, 8<<20)
	path := C.CString(dir)
	defer C.free(unsafe.Pointer(path))
	var failure *C.char
	db := C.rocksdb_open(options, path, &failure)
	if err := taken(failure); err != nil {
		return nil, err
	}
	write := C.rocksdb_writeoptions_create()
	C.rocksdb_writeoptions_disable_WAL(write, 1)
	return &store{db: db, writing: write, read: C.rocksdb_readoptions_create()}, nil
}

func (s *store) close() { C.rocksdb_close(s.db) }

func (s *store) write(b *batch) error {
	var failure *C.char
	C.rocksdb_write(s.db, s.writing, b.batch, &failure)
	return taken(failure)
}

func (s *store) get(key []byte) ([]byte, error) {
	var failure *C.char
	var length C.size_t
	value := C.rocksdb_get(s.db, s.read, chars(key), C.size_t(len(key)), &length, &failure)
	if err := taken(failure); err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(value))
	return C.GoBytes(unsafe.Pointer(value), C.int(length)), nil
}

// batch is a RocksDB WriteBatch; it lives in C memory until destroy.
type batch struct{ batch *C.rocksdb_writebatch_t }

func newBatch() *batch { return &batch{C.rocksdb_writebatch_create()} }

func (b *batch) put(key, value []byte) {
	C.rocksdb_writebatch_put(b.batch, chars(key), C.size_t(len(key)), chars(value), C.size_t(len(value)))
}

// size is the length of the serialised batch, which the batch holds in one buffer.
func (b *batch) size() int {
	var length C.size_t
	C.rocksdb_writebatch_data(b.batch, &length)
	return int(length)
}

func (b *batch) destroy() { C.rocksdb_writebatch_destroy(b.batch) }

func chars(b []byte) *C.char { return (*C.char)(unsafe.Pointer(&b[0])) }

// taken turns an error string of RocksDB's, which the caller owns, into an error.
func taken(failure *C.char) error {
	if failure == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(failure))
	return errors.New(C.GoString(failure))
}
