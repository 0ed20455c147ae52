# shellcheck shell=bash disable=SC2034,SC2154
what='node: worker threads, zlib, crypto, children, an HTTP server'
quick=yes
needs=(node nodejs)
binaries=(node)

workload() { "${guest[@]}" node "$root/testdata/hosts/work.js"; }
