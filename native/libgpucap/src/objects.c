/*
 * What a library is and does, by its file: the driver by its names (DT_SONAME) or by what it
 * exports, and what looks up functions by itself (dlsym among what it imports), like NVIDIA's
 * runtime. What it needs is looked for where ld.so does, roughly; what cannot be found counts as
 * one that does.
 */
#include "objects.h"

#include "os.h"
#include "resolve.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define DEEPEST 4  /* libraries that need libraries */
#define MOST    64 /* files that are looked into */

struct image {
    const uint8_t *bytes;
    uint64_t length;
    const ElfW(Dyn) * entries; /* its dynamic section */
    uint64_t count;
    const char *text; /* its names */
    uint64_t text_bytes;
};

struct search {
    const char *file; /* that needs the one that is looked for; NULL: the program */
    bool apart;
    unsigned files, depth;
};

static const void *at(const struct image *image, uint64_t offset, uint64_t length) {
    bool inside = offset <= image->length && length <= image->length - offset;
    return inside ? image->bytes + offset : NULL;
}

/* The segment of this type, or the one that holds an address; NULL: there is none. */
static const ElfW(Phdr) * segment(const struct image *image, uint32_t type, uint64_t address) {
    const ElfW(Ehdr) *header = at(image, 0, sizeof *header);
    for (unsigned i = 0; header && i < header->e_phnum; i++) {
        const ElfW(Phdr) *found = at(image, header->e_phoff + i * sizeof *found, sizeof *found);
        if (found && found->p_type == type &&
            (type != PT_LOAD || address - found->p_vaddr < found->p_filesz))
            return found;
    }
    return NULL;
}

/* What of the file is at an address; NULL: not all of it. */
static const void *at_address(const struct image *image, uint64_t address, uint64_t length) {
    const ElfW(Phdr) *load = segment(image, PT_LOAD, address);
    return load ? at(image, load->p_offset + (address - load->p_vaddr), length) : NULL;
}

static uint64_t value(const struct image *image, int64_t tag) {
    for (uint64_t i = 0; i < image->count; i++)
        if (image->entries[i].d_tag == tag)
            return image->entries[i].d_un.d_val;
    return 0;
}

static const char *name_at(const struct image *image, uint64_t offset) {
    return offset < image->text_bytes ? image->text + offset : "";
}

/* false: it is no object of ours to read. */
static bool read_image(struct image *image) {
    const unsigned char *magic = at(image, 0, SELFMAG + 1);
    if (!magic || memcmp(magic, ELFMAG, SELFMAG) != 0 || magic[EI_CLASS] != ELFCLASS64)
        return false;
    const ElfW(Phdr) *dynamic = segment(image, PT_DYNAMIC, 0);
    image->entries = dynamic ? at(image, dynamic->p_offset, dynamic->p_filesz) : NULL;
    image->count = image->entries ? dynamic->p_filesz / sizeof *image->entries : 0;
    image->text_bytes = value(image, DT_STRSZ);
    image->text = at_address(image, value(image, DT_STRTAB), image->text_bytes);
    return image->text && image->text_bytes && !image->text[image->text_bytes - 1];
}

bool objects_is_driver_name(const char *name) {
    static const char *const names[] = {"libcuda.so", "libnvidia-ml.so"};
    const char *file = strrchr(name, '/');
    file = file ? file + 1 : name;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(file, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool is_one_of(const char *name, const char *const *names) {
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

/* How many symbols it has: by the section, or by the names, which follow them in most files. */
static uint64_t symbols(const struct image *image, uint64_t table) {
    const ElfW(Ehdr) *header = at(image, 0, sizeof *header);
    for (unsigned i = 0; header && i < header->e_shnum; i++) {
        const ElfW(Shdr) *section =
            at(image, header->e_shoff + i * sizeof *section, sizeof *section);
        if (section && section->sh_type == SHT_DYNSYM && section->sh_addr == table)
            return section->sh_size / sizeof(ElfW(Sym));
    }
    uint64_t names = value(image, DT_STRTAB);
    return names > table ? (names - table) / sizeof(ElfW(Sym)) : 0;
}

/* It exports what the driver alone begins with, or imports what finds functions. */
static bool is_or_finds_driver(const struct image *image) {
    static const char *const exports[] = {"cuInit", "nvmlInit_v2", NULL};
    static const char *const imports[] = {"dlsym", "dlvsym", "dlopen", "dlmopen", NULL};
    uint64_t table = value(image, DT_SYMTAB), count = symbols(image, table);
    const ElfW(Sym) *symbol = at_address(image, table, count * sizeof *symbol);
    for (uint64_t i = 0; symbol && i < count; i++) {
        bool import = symbol[i].st_shndx == SHN_UNDEF;
        if (is_one_of(name_at(image, symbol[i].st_name), import ? imports : exports))
            return true;
    }
    return false;
}

static bool brings(const char *path, struct search *search);

static bool file_brings(const char *folder, size_t length, const char *name, struct search *search,
                        bool *answer) {
    char path[512];
    int written = snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, name);
    struct stat status;
    if (written < 0 || (size_t)written >= sizeof path || os_stat(path, &status) != 0)
        return false;
    *answer = brings(path, search);
    return true;
}

/* In one of the folders of a list; "$ORIGIN" is where the library is that needs it. */
static bool in_folders(const char *folders, const char *name, struct search *search, bool *answer) {
    static const char *const origins[] = {"$ORIGIN", "${ORIGIN}"};
    for (; folders && *folders; folders += *folders == ':') {
        char folder[512];
        size_t length = strcspn(folders, ":");
        const char *slash = search->file ? strrchr(search->file, '/') : NULL;
        int written = snprintf(folder, sizeof folder, "%.*s", (int)length, folders);
        for (int i = 0; i < 2 && slash; i++) {
            size_t word = strlen(origins[i]);
            if (strncmp(folders, origins[i], word) == 0 && word <= length)
                written = snprintf(folder, sizeof folder, "%.*s%.*s", (int)(slash - search->file),
                                   search->file, (int)(length - word), folders + word);
        }
        if (written > 0 && (size_t)written < sizeof folder &&
            file_brings(folder, strlen(folder), name, search, answer))
            return true;
        folders += length;
    }
    return false;
}

/* The file of ld.so's cache, as ldconfig writes it. */
#define CACHE       "/etc/ld.so.cache"
#define CACHE_MAGIC "glibc-ld.so.cache1.1"
struct cache {
    char magic[20];
    uint32_t count, strings, spare[5];
    struct {
        int32_t flags;
        uint32_t name, path, version;
        uint64_t hardware;
    } entry[];
};

static bool map_file(const char *path, struct image *image) {
    struct stat status;
    int kept_errno = errno, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    void *bytes = MAP_FAILED;
    if (fd >= 0 && os_fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    errno = kept_errno;
    if (bytes == MAP_FAILED)
        return false;
    *image = (struct image){.bytes = bytes, .length = (uint64_t)status.st_size};
    return true;
}

static bool in_cache(const char *name, struct search *search, bool *answer) {
    struct image file;
    bool found = false;
    if (!map_file(CACHE, &file))
        return false;
    const struct cache *cache = at(&file, 0, sizeof *cache);
    bool good = cache && !memcmp(cache->magic, CACHE_MAGIC, sizeof cache->magic) &&
                at(&file, sizeof *cache, cache->count * sizeof cache->entry[0]);
    for (uint32_t i = 0; good && i < cache->count && !found; i++) {
        const char *key = at(&file, cache->entry[i].name, strlen(name) + 1);
        const char *path = at(&file, cache->entry[i].path, 1);
        found = key && path && memcmp(key, name, strlen(name) + 1) == 0 &&
                memchr(path, 0, file.length - cache->entry[i].path);
        if (found)
            *answer = brings(path, search);
    }
    munmap((void *)(uintptr_t)file.bytes, file.length);
    return found;
}

/* ld.so's order: the library's own folders, the environment's, the cache, the usual ones. */
static bool needed_brings(const struct image *by, const char *name, struct search *search) {
    static const char usual[] = "/lib64:/usr/lib64:/lib:/usr/lib";
    static const char *const safe[] = {"libc.so.6",
                                       "libm.so.6",
                                       "libpthread.so.0",
                                       "libdl.so.2",
                                       "librt.so.1",
                                       "libutil.so.1",
                                       "libgcc_s.so.1",
                                       "libstdc++.so.6",
                                       "ld-linux-x86-64.so.2",
                                       "ld-linux-aarch64.so.1",
                                       NULL};
    bool answer = true;
    if (objects_is_driver_name(name))
        return true;
    if (is_one_of(name, safe) || (!search->apart && resolve_loaded(name)))
        return false;
    if (strchr(name, '/'))
        return brings(name, search);
    const char *own = by ? name_at(by, value(by, DT_RUNPATH)) : "";
    if (by && !*own)
        own = name_at(by, value(by, DT_RPATH));
    return in_folders(own, name, search, &answer) ||
                   in_folders(secure_getenv("LD_LIBRARY_PATH"), name, search, &answer) ||
                   in_cache(name, search, &answer) || in_folders(usual, name, search, &answer)
               ? answer
               : true;
}

static bool image_brings(struct image *image, const char *path, struct search *search) {
    const char *before = search->file;
    bool found = objects_is_driver_name(name_at(image, value(image, DT_SONAME))) ||
                 is_or_finds_driver(image);
    search->file = path;
    search->depth++;
    for (uint64_t i = 0; i < image->count && !found; i++)
        if (image->entries[i].d_tag == DT_NEEDED)
            found = needed_brings(image, name_at(image, image->entries[i].d_un.d_val), search);
    search->depth--;
    search->file = before;
    return found;
}

static bool brings(const char *path, struct search *search) {
    struct image image;
    if (search->depth == DEEPEST || ++search->files > MOST)
        return true;
    if (!map_file(path, &image))
        return false; /* ld.so will say so */
    bool found = read_image(&image) && image_brings(&image, path, search);
    munmap((void *)(uintptr_t)image.bytes, image.length);
    return found;
}

bool objects_bring_driver(const char *file, bool apart) {
    struct search search = {.apart = apart};
    int kept_errno = errno;
    bool found = file && *file && needed_brings(NULL, file, &search);
    errno = kept_errno;
    return found;
}
