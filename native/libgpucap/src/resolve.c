#include "resolve.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Nothing of libc that has a name may be called on the way to the next dlsym: it may be a sanitizer
 * or a memory allocator, half started, that is asking, and the function its own. Hence these two,
 * and ld.so's list of objects instead of dl_iterate_phdr. */
static bool begins_with(const char *text, const char *beginning) {
    while (*beginning && *text == *beginning)
        text++, beginning++;
    return !*beginning;
}

static bool equal(const char *a, const char *b) {
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* The parts of a loaded object's dynamic section that a lookup by name needs. */
struct symbols {
    uintptr_t base;
    const ElfW(Sym) * table;
    const char *names;
    const char *name; /* that it was linked under; NULL: none */
    const uint32_t *gnu_hash;
    const uint32_t *hash;
};

static const void *located(uintptr_t base, ElfW(Addr) value) {
    /* glibc relocates these entries in memory; a read-only dynamic section keeps offsets. */
    return (const void *)(value < base ? base + value : value);
}

static bool read_symbols(uintptr_t base, const ElfW(Dyn) * entry, struct symbols *out) {
    const ElfW(Dyn) *name = NULL;
    *out = (struct symbols){.base = base};
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        const void *where = located(base, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB)
            out->table = where;
        else if (entry->d_tag == DT_STRTAB)
            out->names = where;
        else if (entry->d_tag == DT_GNU_HASH)
            out->gnu_hash = where;
        else if (entry->d_tag == DT_HASH)
            out->hash = where;
        else if (entry->d_tag == DT_SONAME)
            name = entry;
    }
    out->name = name && out->names ? out->names + name->d_un.d_val : NULL;
    return out->table && out->names && (out->gnu_hash || out->hash);
}

static void *defined(const struct symbols *in, uint32_t index, const char *name) {
    const ElfW(Sym) *symbol = &in->table[index];
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0 ||
        ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !equal(in->names + symbol->st_name, name))
        return NULL;
    return (void *)(in->base + symbol->st_value);
}

/* ELF's own hash table (System V ABI) and GNU's, with its chains ended by a set lowest bit. */
static void *look_up_sysv(const struct symbols *in, const char *name) {
    uint32_t hash = 0;
    for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
        hash = (hash << 4) + *c;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    const uint32_t buckets = in->hash[0], *bucket = in->hash + 2, *chain = bucket + buckets;
    for (uint32_t i = buckets ? bucket[hash % buckets] : 0; i != 0; i = chain[i]) {
        void *found = defined(in, i, name);
        if (found)
            return found;
    }
    return NULL;
}

static void *look_up(const struct symbols *in, const char *name) {
    if (!in->gnu_hash)
        return look_up_sysv(in, name);
    uint32_t hash = 5381;
    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        hash = hash * 33 + *c;
    const uint32_t buckets = in->gnu_hash[0], first = in->gnu_hash[1], words = in->gnu_hash[2];
    const uint32_t *bucket = in->gnu_hash + 4 + words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = bucket + buckets;
    uint32_t i = buckets ? bucket[hash % buckets] : 0;
    if (i < first)
        return NULL;
    for (;; i++) {
        uint32_t link = chain[i - first];
        void *found = (link | 1) == (hash | 1) ? defined(in, i, name) : NULL;
        if (found || (link & 1))
            return found;
    }
}

/* The file's name begins with one of these. */
static bool is_one_of(const char *path, const char *const *beginnings) {
    const char *file = path ? path : "";
    for (const char *at = file; *at; at++)
        if (*at == '/')
            file = at + 1;
    while (*beginnings && !begins_with(file, *beginnings))
        beginnings++;
    return *beginnings != NULL;
}

extern struct r_debug _r_debug __attribute__((weak)); /* ld.so's, for debuggers */

void *resolve_libc(const char *symbol) {
    static const char *const libc[] = {"libc.so.",       "libc-2.",       "libdl.so.", "libdl-2.",
                                       "libpthread.so.", "libpthread-2.", NULL};
    /* These stand at the head of the list, where objects never go away. */
    struct symbols symbols;
    void *found = NULL;
    for (struct link_map *object = &_r_debug ? _r_debug.r_map : NULL; object && !found;
         object = object->l_next)
        if (is_one_of(object->l_name, libc) && read_symbols(object->l_addr, object->l_ld, &symbols))
            found = look_up(&symbols, symbol);
    return found;
}

static const char *const *driver_of(const char *symbol) {
    static const char *const cuda[] = {"libcuda.so", NULL}, *const nvml[] = {"libnvidia-ml.so",
                                                                             NULL};
    return symbol[0] == 'n' ? nvml : cuda;
}

static bool read_object(const struct dl_phdr_info *object, struct symbols *out) {
    const ElfW(Dyn) *dynamic = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    return read_symbols(object->dlpi_addr, dynamic, out);
}

/* What an object is known by as the driver, the surest first: its file's name, the name that it was
 * linked under, or, without these, that it exports what the driver begins with. Programs that look
 * for the driver by themselves export its functions, too, so that counts where nothing else does. A
 * file may have any name (a link, a copy, /proc/self/fd). Our own hooks have none of these. */
enum known_by { BY_FILE, BY_NAME, BY_EXPORTS, BY_NOTHING };

static bool is_driver(const struct dl_phdr_info *object, const char *symbol, enum known_by by) {
    struct symbols symbols;
    if (by == BY_FILE)
        return is_one_of(object->dlpi_name, driver_of(symbol));
    if (!read_object(object, &symbols))
        return false;
    if (by == BY_NAME)
        return is_one_of(symbols.name, driver_of(symbol));
    return look_up(&symbols, symbol[0] == 'n' ? "nvmlInit_v2" : "cuInit");
}

struct search {
    const char *symbol;
    enum known_by by; /* BY_NOTHING: in any object */
    const void *except;
    bool met; /* such an object is there, whether or not it has the symbol */
    void *found;
};

static int search_object(struct dl_phdr_info *object, size_t size, void *argument) {
    (void)size;
    struct search *search = argument;
    struct symbols symbols;
    if ((search->by != BY_NOTHING && !is_driver(object, search->symbol, search->by)) ||
        !read_object(object, &symbols))
        return 0;
    void *found = look_up(&symbols, search->symbol);
    search->met = true;
    search->found = found != search->except ? found : NULL;
    return search->found != NULL;
}

/* Known by one of these, `last` at worst. */
static struct search search_driver(const char *symbol, enum known_by last) {
    struct search search = {.symbol = symbol};
    for (; search.by <= last; search.by++) {
        dl_iterate_phdr(search_object, &search);
        if (search.met)
            break;
    }
    return search;
}

void *resolve_driver(const char *symbol) {
    return search_driver(symbol, BY_EXPORTS).found;
}

void *resolve_named_driver(const char *symbol) {
    return search_driver(symbol, BY_NAME).found;
}

void *resolve_elsewhere(const char *symbol, const void *except) {
    struct search search = {.symbol = symbol, .by = BY_NOTHING, .except = except};
    dl_iterate_phdr(search_object, &search);
    return search.found;
}

static int search_loaded(struct dl_phdr_info *object, size_t size, void *argument) {
    (void)size;
    const char *file = object->dlpi_name ? object->dlpi_name : "", *at = file;
    for (; *at; at++)
        if (*at == '/')
            file = at + 1;
    return equal(file, argument);
}

bool resolve_loaded(const char *name) {
    return dl_iterate_phdr(search_loaded, (void *)(uintptr_t)name) != 0;
}

static int read_closed(struct dl_phdr_info *object, size_t size, void *argument) {
    (void)size; /* glibc has had the counter since 2.4 */
    *(unsigned long long *)argument = object->dlpi_subs;
    return 1;
}

unsigned long long resolve_closed(void) {
    unsigned long long closed = 0;
    dl_iterate_phdr(read_closed, &closed);
    return closed;
}

struct place {
    const char *symbol;
    uintptr_t address;
    enum known_by by;
};

static int holds_address(struct dl_phdr_info *object, size_t size, void *argument) {
    (void)size;
    struct place *place = argument;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && place->address - start < segment->p_memsz) {
            while (place->by < BY_NOTHING && !is_driver(object, place->symbol, place->by))
                place->by++;
            return 1;
        }
    }
    return 0;
}

bool resolve_in_driver(const char *symbol, const void *address) {
    struct place place = {symbol, (uintptr_t)address, BY_FILE};
    if (!dl_iterate_phdr(holds_address, &place))
        return false;
    return place.by <= BY_NAME || (place.by == BY_EXPORTS && !search_driver(symbol, BY_NAME).met);
}

dlsym_function *resolve_next_dlsym(void) {
    static _Atomic(dlsym_function *) known;
    dlsym_function *next = atomic_load_explicit(&known, memory_order_relaxed);
    if (next)
        return next;
    next = (dlsym_function *)resolve_libc("dlsym");
    if (!next)
        return NULL;
    /* Another preloaded library may have a dlsym of its own behind ours: it is called from here, so
     * "next" is what comes after this library. */
    dlsym_function *behind = (dlsym_function *)next(RTLD_NEXT, "dlsym");
    next = behind ? behind : next;
    atomic_store_explicit(&known, next, memory_order_relaxed);
    return next;
}
