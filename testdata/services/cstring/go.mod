module example.test/cstring

go 1.19
