/*
 * dlsym(handle, symbol): asks gpucap_dlsym, returns its answer or jumps to the next dlsym with the
 * arguments and the return address (x30) as they came.
 */
        .text
        .type   entry, %function
entry:
        .cfi_startproc
        hint    #34                     /* bti c: a landing pad, a no-op on older processors */
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset x29, -32
        .cfi_offset x30, -24
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        bl      gpucap_dlsym
        mov     x16, x0                 /* answer, or where to jump: x16 may be a bti call target */
        mov     x17, x1
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        cbnz    x17, 1f
        cbz     x16, 1f                 /* no libc to ask: cannot happen, but NULL is an answer */
        br      x16
1:      mov     x0, x16
        ret
        .cfi_endproc
        .size   entry, .-entry

/* One entry under every version that libc's dlsym has had: libraries that preload their own dlsym look
 * for the next one by dlvsym, which wants the exact version. */
        .globl  dlsym_2_2_5, dlsym_2_17, dlsym_2_34
        .set    dlsym_2_2_5, entry
        .set    dlsym_2_17, entry
        .set    dlsym_2_34, entry
        .symver dlsym_2_2_5, dlsym@GLIBC_2.2.5
        .symver dlsym_2_17, dlsym@GLIBC_2.17
        .symver dlsym_2_34, dlsym@@GLIBC_2.34
        .hidden gpucap_dlsym
        .section .note.GNU-stack, "", %progbits
