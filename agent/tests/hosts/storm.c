/* Threads by the thousand: some at once, all short, each with memory that another one frees. usage: storm WAVES */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 200 };
static void *handed[AT_ONCE];

static void *work(void *slot) {
    void **mine = slot;
    free(*mine);
    for (int i = 0; i < 20; i++) free(malloc(100 + i * 400));
    *mine = malloc(3000);
    memset(*mine, 7, 3000);
    return NULL;
}

int main(int argc, char **argv) {
    int waves = argc > 1 ? atoi(argv[1]) : 10;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    for (int wave = 0; wave < waves; wave++) {
        pthread_t threads[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++)
            if (pthread_create(&threads[i], &attributes, work, &handed[(i + wave) % AT_ONCE])) return 1;
        for (int i = 0; i < AT_ONCE; i++) pthread_join(threads[i], NULL);
    }
    puts("done");
    return 7;
}
