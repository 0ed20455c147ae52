# shellcheck shell=bash disable=SC2034,SC2154
what='JVM: javac, then threads, direct buffers, zip, children, G1'
quick=yes
needs=(javac default-jdk-headless)
binaries=(javac java)

workload() {
    "${guest[@]}" javac -d . "$root/testdata/hosts/Work.java" || return
    "${guest[@]}" java -Xmx256m -XX:+UseG1GC -cp . Work
    # The program ends with 4 on purpose.
    echo "status $?"
}
