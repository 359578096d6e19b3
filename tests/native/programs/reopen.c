/*
 * reopen FIRST SECOND [MIB]: opens the library FIRST, calls every function that libgpucap hooks and
 * the library has with nothing but noughts, closes it, and does the same with SECOND, which cannot
 * come to lie at the same address. Prints what each answered. With MIB, of libcuda: at last takes
 * pieces of that size from the second until it is refused, and prints how many.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char *const symbols[] = {
#define HOOK(symbol) #symbol,
#define CALL(symbol)
#include "functions.def"
#undef HOOK
#undef CALL
};
enum { COUNT = sizeof symbols / sizeof *symbols };

typedef int function(void *, void *, void *, void *, void *, void *, void *, void *);
typedef void plain(void);

static void *kept[COUNT]; /* as the first library gave them */

static void *must(void *found) {
    if (!found) {
        fprintf(stderr, "reopen: %s\n", dlerror());
        exit(2);
    }
    return found;
}

static int call(void *pointer) {
    return ((function *)pointer)(0, 0, 0, 0, 0, 0, 0, 0);
}

static void *open_at(const char *file, uintptr_t *at) {
    struct link_map *map = must(dlopen(file, RTLD_NOW | RTLD_LOCAL));
    *at = map->l_addr;
    return map;
}

static void ask_all(void *library, const char *turn) {
    for (int i = 0; i < COUNT; i++) {
        void *pointer = dlsym(library, symbols[i]);
        if (!pointer)
            continue;
        printf("%s %s %d\n", turn, symbols[i], call(pointer));
        if (!kept[i])
            kept[i] = pointer;
    }
}

/* What a program kept from before the library was closed is our hook, and stays good. */
static void ask_kept(const char *turn) {
    for (int i = 0; i < COUNT; i++)
        if (kept[i])
            printf("%s %s %d\n", turn, symbols[i], call(kept[i]));
}

static int pieces(void *library, size_t bytes) {
    void *context, *init = must(dlsym(library, "cuInit"));
    unsigned long long pointer;
    int count = 0;
    int (*alloc)(unsigned long long *, size_t) = must(dlsym(library, "cuMemAlloc_v2"));
    int (*retain)(void **, int) = must(dlsym(library, "cuDevicePrimaryCtxRetain"));
    int (*set)(void *) = must(dlsym(library, "cuCtxSetCurrent"));
    if (((int (*)(unsigned))init)(0) || retain(&context, 0) || set(context))
        return -1;
    while (count < 1000 && alloc(&pointer, bytes) == 0)
        count++;
    return count;
}

int main(int argc, char **argv) {
    uintptr_t first, second;
    if (argc < 3)
        return 1;
    void *library = open_at(argv[1], &first);
    ask_all(library, "first");
    if (getenv("REOPEN_IN_USE"))
        printf("pieces first %d\n", pieces(library, (size_t)atoi(argv[3]) << 20));
    if (dlclose(library) || dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD)) {
        fprintf(stderr, "reopen: %s stays\n", argv[1]);
        return 2;
    }
    if (getenv("REOPEN_KEPT"))
        ask_kept("closed");
    /* The loader takes the same place again if nobody else has. */
    must(mmap((void *)first, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    library = open_at(argv[2], &second);
    if (getenv("REOPEN_KEPT"))
        ask_kept("kept");
    ask_all(library, "second");
    fprintf(stderr, "%s\n", first == second ? "the same place" : "elsewhere");
    if (argc > 3)
        printf("pieces %d\n", pieces(library, (size_t)atoi(argv[3]) << 20));
    return 0;
}
