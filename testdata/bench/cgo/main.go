// The cost of one sampled stack that crosses into Go: C allocations below a Go recursion, nanoseconds a pair.
package main

/*
#include <stdlib.h>
#include <time.h>

static double pairs(long count) {
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (long i = 0; i < count; i++) {
		char *volatile p = malloc(64);
		*p = 1;
		free(p);
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
	return float64(C.pairs(C.long(count)))
}

func main() {
	depth, _ := strconv.Atoi(os.Args[1])
	count, _ := strconv.Atoi(os.Args[2])
	descend(depth, count/10)
	fmt.Printf("%.1f\n", descend(depth, count))
}
