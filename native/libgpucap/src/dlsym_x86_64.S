/*
 * dlsym(handle, symbol): asks gpucap_dlsym, returns its answer or jumps to the next dlsym with the
 * arguments and the return address as they came.
 */
        .text
        .type   entry, @function
entry:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp                /* calls need a stack aligned to 16 bytes */
        .cfi_adjust_cfa_offset 8
        call    gpucap_dlsym            /* hidden: a direct call */
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %rdx, %rdx
        jnz     1f
        testq   %rax, %rax              /* no libc to ask: cannot happen, but NULL is an answer */
        jz      1f
        jmp     *%rax
1:      ret
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
        .section .note.GNU-stack, "", @progbits
