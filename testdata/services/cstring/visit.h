#include <stddef.h>

/* Calls goVisit(size) n times. */
void visit_all(int n, size_t size);
/* Allocates size bytes and keeps them. */
void visit_keep(size_t size);
