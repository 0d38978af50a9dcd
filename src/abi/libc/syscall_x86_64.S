// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// syscall(2), as libc has it, but that its number is still to be found when the call has ended: in a register that the kernel
// leaves alone. A tick that has cut such a call short makes it again (sched/interrupted_call.h), which without the number
// it cannot; libc's ends with EINTR then.
//
// And calls that act on the calling kernel thread, or ask for its number, are for the thread that the caller is: members that
// share kernel threads go to their own first (acting_calls.cpp).
//
// Exported without a version, as the other functions here.

// The arguments of the function to where the system call has them; `seventh`: where the function's last one is.
	.macro	move_arguments seventh
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	%r8, %r10
	movq	%r9, %r8
	movq	\seventh, %r9
	.endm

	.text
	.p2align 4
	.globl	syscall
	.protected	syscall
	.type	syscall, @function
syscall:
	.cfi_startproc
	// fork(2) and its like, whose child may return on this very stack, before us: nothing of ours is on it then.
	cmpq	$56, %rdi	// clone
	je	2f
	cmpq	$57, %rdi	// fork
	je	2f
	cmpq	$58, %rdi	// vfork
	je	2f
	cmpq	$435, %rdi	// clone3
	je	2f
	cmpq	$511, %rdi
	ja	4f
	btq	%rdi, bosk_acting_calls(%rip)
	jc	5f
4:
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	movq	%rdi, %rbx
	move_arguments 16(%rsp)
	syscall
	.globl	bosk_after_syscall
	.hidden	bosk_after_syscall
bosk_after_syscall:
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
1:
	cmpq	$-4095, %rax
	jae	3f
	ret
2:
	move_arguments 8(%rsp)
	syscall
	jmp	1b
3:
	// errno, by its function: its address is libc's own business.
	negl	%eax
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	call	__errno_location@PLT
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	movl	%ecx, (%rax)
	movq	$-1, %rax
	ret
5:
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	pushq	%rcx
	.cfi_adjust_cfa_offset 8
	pushq	%r8
	.cfi_adjust_cfa_offset 8
	pushq	%r9
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	bosk_before_acting_call
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%r9
	.cfi_adjust_cfa_offset -8
	popq	%r8
	.cfi_adjust_cfa_offset -8
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testq	%rax, %rax
	je	4b
	ret
	.cfi_endproc
	.size	syscall, . - syscall

	.section	.note.GNU-stack, "", @progbits
