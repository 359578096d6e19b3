/*
 * dlopen(file, flags) and dlmopen(list, file, flags): ask gpucap_dlopen or gpucap_dlmopen, and jump to
 * the next one with the argument that it corrected, and the return address as it came.
 */
        .text
        .type   open, @function
open:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp                /* calls need a stack aligned to 16 bytes */
        .cfi_adjust_cfa_offset 8
        call    gpucap_dlopen           /* hidden: a direct call */
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        movl    %edx, %esi
        testq   %rax, %rax
        jz      1f
        jmp     *%rax
1:      ret
        .cfi_endproc
        .size   open, .-open

        .type   open_in, @function
open_in:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        movq    %rsp, %rdx              /* where the flags are: they may be corrected as well */
        call    gpucap_dlmopen
        movq    %rdx, %rdi
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        testq   %rax, %rax
        jz      1f
        jmp     *%rax
1:      ret
        .cfi_endproc
        .size   open_in, .-open_in

/* Under every version that libc's have had, as dlsym (dlsym_x86_64.S). */
        .globl  dlopen_2_2_5, dlopen_2_34, dlmopen_2_3_4, dlmopen_2_34
        .set    dlopen_2_2_5, open
        .set    dlopen_2_34, open
        .set    dlmopen_2_3_4, open_in
        .set    dlmopen_2_34, open_in
        .symver dlopen_2_2_5, dlopen@GLIBC_2.2.5
        .symver dlopen_2_34, dlopen@@GLIBC_2.34
        .symver dlmopen_2_3_4, dlmopen@GLIBC_2.3.4
        .symver dlmopen_2_34, dlmopen@@GLIBC_2.34
        .hidden gpucap_dlopen, gpucap_dlmopen
        .section .note.GNU-stack, "", @progbits
