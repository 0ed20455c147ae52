module example.test/static

go 1.19
