// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Context switch for AArch64 (AAPCS64): x19-x30, the low halves of v8-v15, FPCR, FPSR, TPIDR_EL0.

	.text
	.p2align 5
	.globl	bosk_context_switch
	.hidden	bosk_context_switch
	.type	bosk_context_switch, %function
bosk_context_switch:
	.cfi_startproc
	sub	sp, sp, #176
	.cfi_adjust_cfa_offset 176
	stp	x19, x20, [sp, #0]
	stp	x21, x22, [sp, #16]
	stp	x23, x24, [sp, #32]
	stp	x25, x26, [sp, #48]
	stp	x27, x28, [sp, #64]
	stp	x29, x30, [sp, #80]
	.cfi_rel_offset x29, 80
	.cfi_rel_offset x30, 88
	stp	d8, d9, [sp, #96]
	stp	d10, d11, [sp, #112]
	stp	d12, d13, [sp, #128]
	stp	d14, d15, [sp, #144]
	mrs	x9, fpcr
	mrs	x10, fpsr
	stp	x9, x10, [sp, #160]
	mov	x9, sp
	str	x9, [x0]
	cbz	x2, 1f
	msr	tpidr_el0, x2
1:
	mov	sp, x1
	ldp	x0, x9, [sp, #160]
	msr	fpcr, x0
	cmp	x9, x10
	b.eq	2f
	msr	fpsr, x9
2:
	# Returned: the state that is in force now.
	orr	x0, x0, x9, lsl #32
	ldp	x19, x20, [sp, #0]
	ldp	x21, x22, [sp, #16]
	ldp	x23, x24, [sp, #32]
	ldp	x25, x26, [sp, #48]
	ldp	x27, x28, [sp, #64]
	ldp	x29, x30, [sp, #80]
	ldp	d8, d9, [sp, #96]
	ldp	d10, d11, [sp, #112]
	ldp	d12, d13, [sp, #128]
	ldp	d14, d15, [sp, #144]
	add	sp, sp, #176
	.cfi_adjust_cfa_offset -176
	br	x30
	.cfi_endproc
	.size	bosk_context_switch, .-bosk_context_switch

// Outermost frame: x19 = argument, x20 = function.
	.p2align 4
	.globl	bosk_context_entry
	.hidden	bosk_context_entry
	.type	bosk_context_entry, %function
bosk_context_entry:
	.cfi_startproc
	.cfi_undefined x30
	mov	x29, #0
	mov	x30, #0
	mov	x0, x19
	blr	x20
	brk	#1
	.cfi_endproc
	.size	bosk_context_entry, .-bosk_context_entry

	.section .note.GNU-stack, "", %progbits
