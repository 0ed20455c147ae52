/* A library whose thread-local storage must be in the static block, of which little is left after the start. */
#include <stdlib.h>
#include <string.h>

static __thread __attribute__((tls_model("initial-exec"))) char local[1200];

void *allocate(size_t size) {
    local[size % sizeof local]++;
    return memset(malloc(size), local[0], size);
}
