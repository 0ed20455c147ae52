// A program without cgo: built with CGO_ENABLED=0 it is static, and no preload can reach it.
package main

import "fmt"

func main() { fmt.Println("started") }
