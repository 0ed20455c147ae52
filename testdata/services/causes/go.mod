module example.test/causes

go 1.19
