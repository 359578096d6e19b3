/*
 * Where dlopen and dlmopen load: a library that brings the driver with it must not get it past us.
 *
 * RTLD_DEEPBIND lets a library find the driver's functions before ours, and a link-map list of its
 * own (dlmopen) has a second driver in it that nobody counts. So for the driver itself, and for
 * what names it among the libraries that it needs, the flag is left out and the list is the common
 * one. Everything else is loaded as it was asked for.
 *
 * Called by the assembly in dlopen_<machine>.S, which jumps to the next dlopen with the arguments
 * as corrected and the return address as it came: where libraries are looked for depends on the
 * caller.
 */
#include "dlopen.h"

#include "os.h"
#include "resolve.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

struct image {
    const uint8_t *bytes;
    uint64_t length;
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

static bool is_driver(const char *name) {
    static const char *const names[] = {"libcuda.so", "libnvidia-ml.so"};
    const char *file = strrchr(name, '/');
    file = file ? file + 1 : name;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(file, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Whether the object is the driver by its own name (DT_SONAME), or needs it (DT_NEEDED). */
static bool names_driver(const struct image *image) {
    const unsigned char *magic = at(image, 0, SELFMAG);
    if (!magic || memcmp(magic, ELFMAG, SELFMAG) != 0 || magic[EI_CLASS] != ELFCLASS64)
        return false;
    const ElfW(Phdr) *dynamic = segment(image, PT_DYNAMIC, 0), *load;
    const ElfW(Dyn) *entries = dynamic ? at(image, dynamic->p_offset, dynamic->p_filesz) : NULL;
    uint64_t count = entries ? dynamic->p_filesz / sizeof *entries : 0, strings = 0, length = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (entries[i].d_tag == DT_STRTAB)
            strings = entries[i].d_un.d_ptr;
        if (entries[i].d_tag == DT_STRSZ)
            length = entries[i].d_un.d_val;
    }
    const char *text = NULL;
    if ((load = segment(image, PT_LOAD, strings)))
        text = at(image, load->p_offset + (strings - load->p_vaddr), length);
    if (!text || !length || text[length - 1])
        return false;
    for (uint64_t i = 0; i < count; i++)
        if ((entries[i].d_tag == DT_SONAME || entries[i].d_tag == DT_NEEDED) &&
            entries[i].d_un.d_val < length && is_driver(text + entries[i].d_un.d_val))
            return true;
    return false;
}

/* A name without a slash is looked for by ld.so alone: of it only the name is known. */
static bool brings_driver(const char *file) {
    if (!file || is_driver(file) || !strchr(file, '/'))
        return file && is_driver(file);
    int kept_errno = errno;
    bool found = false;
    struct stat status;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && os_fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        struct image image = {.length = (uint64_t)status.st_size};
        void *bytes = mmap(NULL, image.length, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            image.bytes = bytes;
            found = names_driver(&image);
            munmap(bytes, image.length);
        }
    }
    if (fd >= 0)
        close(fd);
    errno = kept_errno;
    return found;
}

static void *next(const char *symbol) {
    dlsym_function *dlsym_behind = resolve_next_dlsym();
    return dlsym_behind ? dlsym_behind(RTLD_NEXT, symbol) : NULL;
}

struct corrected gpucap_dlopen(const char *file, int flags) {
    static void *known;
    if (!known)
        known = next("dlopen");
    if ((flags & RTLD_DEEPBIND) && brings_driver(file))
        flags &= ~RTLD_DEEPBIND;
    return (struct corrected){known, (uintptr_t)flags};
}

struct corrected gpucap_dlmopen(intptr_t list, const char *file, int *flags) {
    static void *known;
    if (!known)
        known = next("dlmopen");
    if ((list != LM_ID_BASE || (*flags & RTLD_DEEPBIND)) && brings_driver(file)) {
        list = LM_ID_BASE;
        *flags &= ~RTLD_DEEPBIND;
    }
    return (struct corrected){known, (uintptr_t)list};
}
