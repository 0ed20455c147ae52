"""Threads that come and go, worker processes by fork and by spawn, and the C library called directly."""
import concurrent.futures
import ctypes
import hashlib
import multiprocessing
import os
import threading
import zlib


def work(n):
    blob = bytes(range(256)) * (n % 300 + 1)
    return hashlib.sha256(zlib.compress(blob, 6)).hexdigest()


def storm(rounds):
    results = []
    lock = threading.Lock()

    def one(i):
        value = work(i)
        with lock:
            results.append(value)

    for start in range(0, rounds, 50):
        threads = [threading.Thread(target=one, args=(start + i,)) for i in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return hashlib.sha256("".join(sorted(results)).encode()).hexdigest()


def main():
    print("storm", storm(1000))
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with concurrent.futures.ProcessPoolExecutor(4, mp_context=context) as pool:
            joined = "".join(pool.map(work, range(300), chunksize=10))
        print(method, hashlib.sha256(joined.encode()).hexdigest())

    libc = ctypes.CDLL(None)
    libc.malloc.restype = libc.realloc.restype = libc.aligned_alloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    aligned = 0
    for power in range(3, 22):
        p = libc.aligned_alloc(1 << power, 3 << power)
        aligned += p % (1 << power) == 0
        libc.free(p)
        p = libc.malloc(1 << power)
        ctypes.memset(p, power, 1 << power)
        p = libc.realloc(p, 5 << power)
        assert ctypes.string_at(p, 1 << power) == bytes([power]) * (1 << power)
        libc.free(p)
    print("aligned", aligned)
    pid = os.fork()
    if pid == 0:
        os._exit(threading.active_count())
    print("fork with threads gone by", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


if __name__ == "__main__":
    main()
