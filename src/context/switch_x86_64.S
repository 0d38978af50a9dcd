// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Context switch for x86-64 (System V).
//
// The return goes through pop + jmp, not ret: the return-address predictor holds the frames of the
// context that is left, so a ret would always be mispredicted (8 ns against 2.6 on an EPYC).

	.text
	.p2align 5
	.globl	bosk_context_switch
	.hidden	bosk_context_switch
	.type	bosk_context_switch, @function
bosk_context_switch:
	.cfi_startproc
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	pushq	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r12, 0
	pushq	%r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r13, 0
	pushq	%r14
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r14, 0
	pushq	%r15
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r15, 0
	pushq	$0
	.cfi_adjust_cfa_offset 8
	stmxcsr	(%rsp)
	fnstcw	4(%rsp)
	cmpb	$0, bosk_x87_flags_matter(%rip)
	jne	6f
7:
	movq	%rsp, (%rdi)
	testq	%rdx, %rdx
	jz	1f
	wrfsbase %rdx
1:
	# The two loads of control state cost more than the rest of the way; mostly nothing changes.
	movl	(%rsp), %eax
	movzwl	4(%rsp), %edx
	movq	%rsi, %rsp
	cmpl	(%rsp), %eax
	jne	4f
5:
	cmpw	4(%rsp), %dx
	jne	2f
	cmpb	$0, bosk_x87_flags_matter(%rip)
	jne	8f
3:
	.cfi_remember_state
	# Returned: the state that is in force now.
	shlq	$32, %rdx
	orq	%rdx, %rax
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%r15
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r15
	popq	%r14
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r14
	popq	%r13
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r13
	popq	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r12
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	.cfi_register %rip, %rcx
	jmpq	*%rcx
4:
	.cfi_restore_state
	# Most often, and only because of a flag.
	ldmxcsr	(%rsp)
	movl	(%rsp), %eax
	jmp	5b
6:
	fnstsw	6(%rsp)
	# The exception flags; the rest of the status word is nobody's across a call.
	andw	$0x3f, 6(%rsp)
	jmp	7b
8:
	movq	(%rdi), %rcx
	movzwl	6(%rcx), %ecx
	cmpw	6(%rsp), %cx
	jne	2f
	shll	$16, %ecx
	orl	%ecx, %edx
	jmp	3b
2:
	# Cleared first: a flag that the new control word does not mask would be taken for a fault.
	fnclex
	fldcw	4(%rsp)
	movzwl	4(%rsp), %edx
	movzwl	6(%rsp), %ecx
	testl	%ecx, %ecx
	jz	3b
	# Flags can only be set as part of the whole environment. In the red zone, which signals keep clear.
	fnstenv	-32(%rsp)
	orb	%cl, -28(%rsp)
	movw	%dx, -32(%rsp)
	fldenv	-32(%rsp)
	shll	$16, %ecx
	orl	%ecx, %edx
	jmp	3b
	.cfi_endproc
	.size	bosk_context_switch, .-bosk_context_switch

// The outermost frame of a user-level thread: r12 = argument, r13 = function. The undefined return
// address tells unwinders that nothing lies below.
	.p2align 4
	.globl	bosk_context_entry
	.hidden	bosk_context_entry
	.type	bosk_context_entry, @function
bosk_context_entry:
	.cfi_startproc
	.cfi_undefined %rip
	xorl	%ebp, %ebp
	movq	%r12, %rdi
	callq	*%r13
	ud2
	.cfi_endproc
	.size	bosk_context_entry, .-bosk_context_entry

	.section .note.GNU-stack, "", @progbits
