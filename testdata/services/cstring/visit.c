#include "visit.h"
#include "_cgo_export.h"
#include <stdlib.h>
#include <string.h>

void visit_all(int n, size_t size) {
    for (int i = 0; i < n; i++)
        goVisit(size);
}

void visit_keep(size_t size) {
    char *volatile kept = malloc(size);
    if (kept)
        memset(kept, 1, size);
}
