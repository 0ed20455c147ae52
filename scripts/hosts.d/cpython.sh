# shellcheck shell=bash disable=SC2034,SC2154
what='CPython: 16 modules of its own test suite, case by case'
limit=1200
needs=(/usr/bin/python3 python3 '/usr/lib/python3.*/test/test_threading.py' "libpython$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || echo 3.11)-testsuite")
binaries=(/usr/bin/python3)

workload() {
    local code=0
    # A virtual machine without a host that answers on vsock waits for ever there.
    # Two cases list the descriptors of a child, and would list the agent's own were it in there: as by default, it is not.
    # A script that was started in the background ignores interrupts, and two cases wait for one.
    "${guest[@]}" env -u OFFHEAP_CHILDREN --default-signal=INT /usr/bin/python3 -m test --junit-xml "$PWD/results.xml" --timeout 600 \
        --ignore '*VSOCK*' \
        test_threading test_subprocess test_socket test_fork1 test_thread test_queue test_signal test_ctypes test_mmap \
        test_ssl test_select test_posix test_os test_pty test_wait4 test_faulthandler >log 2>&1 || code=$?
    # Each case with its result; the log holds times and pids.
    /usr/bin/python3 - results.xml <<'PYTHON' || tail -50 log
import sys
import xml.etree.ElementTree as tree
cases = {}
for case in tree.parse(sys.argv[1]).iter("testcase"):
    children = [child.tag for child in case if child.tag in ("error", "failure", "skipped")]
    cases[case.get("name")] = "".join(children) or "passed"
for name, result in sorted(cases.items()):
    print(name, result)
print(len(cases), "cases")
PYTHON
    return "$code"
}
