/*
 * dlopen(file, flags) and dlmopen(list, file, flags): ask gpucap_dlopen or gpucap_dlmopen, and jump to
 * the next one with the argument that it corrected, and the return address (x30) as it came.
 */
        .text
        .type   open, %function
open:
        .cfi_startproc
        hint    #34                     /* bti c: a landing pad, a no-op on older processors */
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset x29, -32
        .cfi_offset x30, -24
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        bl      gpucap_dlopen
        mov     x16, x0
        mov     x17, x1
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        mov     x1, x17
        cbz     x16, 1f
        br      x16
1:      mov     x0, xzr
        ret
        .cfi_endproc
        .size   open, .-open

        .type   open_in, %function
open_in:
        .cfi_startproc
        hint    #34
        stp     x29, x30, [sp, #-48]!
        .cfi_def_cfa_offset 48
        .cfi_offset x29, -48
        .cfi_offset x30, -40
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
        add     x2, sp, #32             /* where the flags are: they may be corrected as well */
        bl      gpucap_dlmopen
        mov     x16, x0
        mov     x17, x1
        ldp     x0, x1, [sp, #16]
        ldr     x2, [sp, #32]
        ldp     x29, x30, [sp], #48
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        mov     x0, x17
        cbz     x16, 1f
        br      x16
1:      mov     x0, xzr
        ret
        .cfi_endproc
        .size   open_in, .-open_in

/* Under every version that libc's have had, as dlsym (dlsym_aarch64.S). */
        .globl  dlopen_2_17, dlopen_2_34, dlmopen_2_17, dlmopen_2_34
        .set    dlopen_2_17, open
        .set    dlopen_2_34, open
        .set    dlmopen_2_17, open_in
        .set    dlmopen_2_34, open_in
        .symver dlopen_2_17, dlopen@GLIBC_2.17
        .symver dlopen_2_34, dlopen@@GLIBC_2.34
        .symver dlmopen_2_17, dlmopen@GLIBC_2.17
        .symver dlmopen_2_34, dlmopen@@GLIBC_2.34
        .hidden gpucap_dlopen, gpucap_dlmopen
        .section .note.GNU-stack, "", %progbits
