// The cost of one stack that crosses into Go: taken in C below a Go recursion, nanoseconds.
package main

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

typedef void (*hook)(void **, unsigned *, unsigned);

static double stacks(long count) {
	struct timespec a, b;
	void *frames[128];
	hook unwind;
	size_t length = sizeof unwind;
	int (*mallctl)(const char *, void *, size_t *, void *, size_t) = dlsym(RTLD_DEFAULT, "mallctl");
	if (!mallctl || mallctl("experimental.hooks.prof_backtrace", &unwind, &length, NULL, 0)) exit(1);
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (long i = 0; i < count; i++) {
		unsigned found = 0;
		unwind(frames, &found, 128);
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	return ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / count;
}
*/
import "C"

import (
	"fmt"
	"os"
	"strconv"
)

//go:noinline
func descend(depth int, count int) float64 {
	if depth > 0 {
		return descend(depth-1, count) + 0
	}
	return float64(C.stacks(C.long(count)))
}

func main() {
	depth, _ := strconv.Atoi(os.Args[1])
	count, _ := strconv.Atoi(os.Args[2])
	descend(depth, count/10)
	fmt.Printf("%.1f\n", descend(depth, count))
}
