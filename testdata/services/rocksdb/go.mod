module example.test/rocksdb

go 1.19
