/*
 * What a module's variables take of the device, read from its image: a cubin (ELF), a fat binary of
 * them, or PTX. An image comes as an address without a length and may be anything, so it is copied
 * with process_vm_readv, which fails where there is nothing to read.
 *
 * Layouts: "CUDA Binary Utilities" (cubin: ELF, variables in .nv.global and .nv.global.init) and
 * "PTX ISA", Variable Declarations; of fat binaries, which NVIDIA does not document, fatbinary.h of
 * the toolkit and what its own tools write.
 */
#ifndef CUDA_IMAGE_H
#define CUDA_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct cuda_image {
    uint64_t bytes; /* of its variables */
    bool known;     /* false: it is compressed, or of no kind that is known here */
};

#define IMAGE_WRAPPER 0x466243b1u
#define IMAGE_FATBIN  0xba55ed50u

/* The beginning of each part of a fat binary. */
struct image_part {
    uint16_t kind; /* 1: PTX, 2: cubin */
    uint16_t version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t compressed_bytes; /* 0: it is not */
    uint32_t spare[5];
    uint64_t flags, zero, whole_bytes; /* whole: of what is compressed */
};
#define IMAGE_COMPRESSED 0xf000u

/* The pretended driver's own need no decompression: they only say that they are compressed. */
#ifndef IMAGE_READS_COMPRESSED
#define IMAGE_READS_COMPRESSED 0
#endif

static inline size_t image_copy(void *to, uint64_t from, size_t bytes) {
    struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)from, bytes};
    long got = syscall(SYS_process_vm_readv, getpid(), &here, 1ul, &there, 1ul, 0ul);
    return got < 0 ? 0 : (size_t)got;
}

static inline bool image_read(void *to, uint64_t from, size_t bytes) {
    return image_copy(to, from, bytes) == bytes;
}

static inline struct cuda_image image_of_cubin(uint64_t at) {
    struct cuda_image found = {0};
    Elf64_Ehdr header;
    Elf64_Shdr section, names;
    char name[16];
    if (!image_read(&header, at, sizeof header) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_shentsize != sizeof section || header.e_shstrndx >= header.e_shnum ||
        !image_read(&names, at + header.e_shoff + header.e_shstrndx * sizeof names, sizeof names))
        return found;
    for (unsigned i = 0; i < header.e_shnum; i++) {
        if (!image_read(&section, at + header.e_shoff + i * sizeof section, sizeof section))
            return found;
        if (!(section.sh_flags & SHF_ALLOC) || section.sh_name >= names.sh_size)
            continue;
        size_t length = image_copy(name, at + names.sh_offset + section.sh_name, sizeof name);
        if (length >= 10 && memcmp(name, ".nv.global", 10) == 0)
            found.bytes += section.sh_size;
    }
    found.known = true;
    return found;
}

/* Text that is read piece by piece. */
struct image_text {
    uint64_t at, end; /* end: UINT64_MAX where a NUL ends it */
    size_t have, next;
    char piece[512];
};

static inline int image_letter(struct image_text *text) {
    if (text->next == text->have) {
        uint64_t left = text->end - text->at, page = 4096 - text->at % 4096;
        size_t want = sizeof text->piece;
        want = want > left ? (size_t)left : want;
        want = want > page ? (size_t)page : want;
        text->have = want ? image_copy(text->piece, text->at, want) : 0;
        text->at += text->have;
        text->next = 0;
        if (!text->have)
            return 0;
    }
    return (unsigned char)text->piece[text->next++];
}

static inline bool image_of_name(int c) {
    return c == '_' || c == '$' || c == '%' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
}

/* One declaration: what stands between ".global" and the end of it. */
struct image_variable {
    uint64_t element, count; /* bytes; 0: no type was named, or no length */
};

/* A word of it: a type as ".b8", ".f32", ".v4". */
static inline void image_word(struct image_variable *variable, const char *word) {
    uint64_t bits = 0;
    const char *digit = word + 2;
    if (word[0] != '.' || !word[1])
        return;
    for (; *digit >= '0' && *digit <= '9'; digit++)
        bits = bits * 10 + (uint64_t)(*digit - '0');
    if (*digit || digit == word + 2)
        return;
    if (word[1] == 'v')
        variable->count *= bits;
    else if (strchr("bsuf", word[1]))
        variable->element = bits / 8;
}

static inline uint64_t image_declared(struct image_text *text) {
    struct image_variable variable = {.count = 1};
    char word[24];
    size_t length = 0;
    int c;
    while ((c = image_letter(text)) && !strchr(";,)={", c)) {
        if (c == '[') {
            uint64_t count = 0;
            while ((c = image_letter(text)) >= '0' && c <= '9')
                if (__builtin_mul_overflow(count, 10u, &count) ||
                    __builtin_add_overflow(count, (uint64_t)(c - '0'), &count))
                    return UINT64_MAX;
            if (__builtin_mul_overflow(variable.count, count, &variable.count))
                return UINT64_MAX;
        } else if (c == '.' || image_of_name(c)) {
            if (length < sizeof word - 1)
                word[length++] = (char)c;
            continue;
        }
        word[length] = 0;
        image_word(&variable, word);
        length = 0;
    }
    return __builtin_mul_overflow(variable.element, variable.count, &variable.count)
               ? UINT64_MAX
               : variable.count;
}

/* The sum of its ".global" declarations; "ld.global" is none. */
static inline struct cuda_image image_of_ptx(uint64_t at, uint64_t end) {
    static const char wanted[] = ".global";
    struct image_text text = {.at = at, .end = end};
    struct cuda_image found = {.known = true};
    int before = ' ', c;
    bool begins = false;
    for (size_t same = 0; (c = image_letter(&text)); before = c) {
        bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (same == sizeof wanted - 1 && blank && begins) {
            uint64_t bytes = image_declared(&text);
            found.bytes = bytes > UINT64_MAX - found.bytes ? UINT64_MAX : found.bytes + bytes;
            same = 0;
        } else if (c == wanted[same] && same < sizeof wanted - 1) {
            begins = same ? begins : !image_of_name(before);
            same++;
        } else {
            same = c == '.';
            begins = !image_of_name(before);
        }
    }
    return found;
}

static inline struct cuda_image image_at(uint64_t at, uint64_t end);

/* Of several the driver takes one: the largest counts that can be read. They are of one source, for
 * one kind of GPU each. */
static inline struct cuda_image image_of_fatbin(uint64_t at) {
    struct cuda_image found = {0};
    struct {
        uint32_t magic;
        uint16_t version, header_bytes;
        uint64_t bytes;
    } header;
    struct image_part part;
    if (!image_read(&header, at, sizeof header))
        return (struct cuda_image){0};
    uint64_t end = at + header.header_bytes + header.bytes;
    for (at += header.header_bytes; at < end; at += part.header_bytes + part.bytes) {
        if (!image_read(&part, at, sizeof part) || part.header_bytes < sizeof part ||
            part.bytes > end - at)
            return found;
        struct cuda_image one = {0};
        if (IMAGE_READS_COMPRESSED || (!part.compressed_bytes && !(part.flags & IMAGE_COMPRESSED)))
            one = image_at(at + part.header_bytes, at + part.header_bytes + part.bytes);
        found.known |= one.known;
        found.bytes = one.bytes > found.bytes ? one.bytes : found.bytes;
    }
    return found;
}

static inline struct cuda_image image_at(uint64_t at, uint64_t end) {
    struct {
        uint32_t magic, version;
        uint64_t data;
    } start = {0};
    image_copy(&start, at, sizeof start);
    if (start.magic == IMAGE_WRAPPER)
        return image_of_fatbin(start.data);
    if (start.magic == IMAGE_FATBIN)
        return image_of_fatbin(at);
    if (memcmp(&start, ELFMAG, SELFMAG) == 0)
        return image_of_cubin(at);
    return image_of_ptx(at, end);
}

/* Of an image of so many bytes. */
static inline struct cuda_image cuda_image_within(const void *image, uint64_t bytes) {
    return image_at((uint64_t)(uintptr_t)image, (uint64_t)(uintptr_t)image + bytes);
}

/* Of an image as cuModuleLoadData takes it. */
static inline struct cuda_image cuda_image(const void *image) {
    return image_at((uint64_t)(uintptr_t)image, UINT64_MAX);
}

#endif
