/* A program that knows what it holds: a million live objects from 16 B to 8 MiB, allocated in a shuffled order by ten
 * functions, among twice as many that are freed again.
 *
 * Prints `FUNCTION LIVE-BYTES LIVE-OBJECTS` for each, `main` with their sum, then `ready`, and waits for the end of its
 * standard input. Sizes are size classes of jemalloc, so that bytes requested and bytes given are the same; the pages are
 * not touched, so that gigabytes cost little. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct site {
    const char *name;
    void *(*allocate)(size_t);
    size_t size;
    size_t count;
};

/* Written after the call, so that no function ends in a jump to malloc and leaves the stack. */
static void *volatile last;
#define SITE(name)                                                      \
    __attribute__((noinline)) static void *name(size_t size) {          \
        void *p = malloc(size);                                         \
        last = p;                                                       \
        return p;                                                       \
    }
SITE(site_16_b)
SITE(site_64_b)
SITE(site_224_b)
SITE(site_1_kib)
SITE(site_4_kib)
SITE(site_40_kib)
SITE(site_320_kib)
SITE(site_2_mib)
SITE(site_8_mib)
SITE(site_of_all_sizes)

static struct site sites[] = {
    {"site_16_b", site_16_b, 16, 330000},
    {"site_64_b", site_64_b, 64, 220000},
    {"site_224_b", site_224_b, 224, 160000},
    {"site_1_kib", site_1_kib, 1024, 200000},
    {"site_4_kib", site_4_kib, 4096, 60000},
    {"site_40_kib", site_40_kib, 40960, 7000},
    {"site_320_kib", site_320_kib, 327680, 900},
    {"site_2_mib", site_2_mib, 2 << 20, 150},
    {"site_8_mib", site_8_mib, 8 << 20, 40},
    {"site_of_all_sizes", site_of_all_sizes, 0, 30000},
};
enum { SITES = sizeof sites / sizeof *sites };

static uint64_t state = 0x9e3779b97f4a7c15u;
static uint64_t next(void) { /* xorshift64 */
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

int main(void) {
    size_t objects = 0, bytes[SITES] = {0}, counts[SITES] = {0}, total = 0, live = 0;
    for (int i = 0; i < SITES; i++) objects += sites[i].count;
    uint8_t *order = malloc(objects);
    void **held = malloc(objects * sizeof *held);
    for (size_t i = 0, n = 0; i < SITES; i++)
        for (size_t k = 0; k < sites[i].count; k++) order[n++] = (uint8_t)i;
    for (size_t n = objects - 1; n > 0; n--) {
        size_t other = next() % (n + 1);
        uint8_t swapped = order[n];
        order[n] = order[other];
        order[other] = swapped;
    }
    for (size_t n = 0; n < objects; n++) {
        struct site *site = &sites[order[n]];
        /* A class of each power of two from 16 B to 64 KiB. */
        size_t size = site->size ? site->size : (size_t)16 << next() % 13;
        void *fleeting = site->allocate(size), *other = site->allocate(size);
        held[n] = site->allocate(size);
        free(fleeting);
        free(other);
        bytes[order[n]] += size;
        counts[order[n]]++;
    }
    /* These two are held as well, and belong to main. */
    total = objects + objects * sizeof *held;
    live = 2;
    for (int i = 0; i < SITES; i++) {
        printf("%s %zu %zu\n", sites[i].name, bytes[i], counts[i]);
        total += bytes[i];
        live += counts[i];
    }
    printf("main %zu %zu\nready\n", total, live);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return held[0] == NULL;
}
