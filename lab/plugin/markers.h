// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Instructions that tell the locality plugin something. Each is a NOP with an operand that no compiler
// makes: it does nothing on a processor, needs no privilege, and touches no memory. The plugin finds it
// when QEMU translates it and is called when it runs.
//
// Any program may include this header. Under `bosk lab --locality` the whole command is counted;
// BOSK_LAB_MARK(BOSK_LAB_BEGIN) forgets what was counted before it, and BOSK_LAB_MARK(BOSK_LAB_END) ends
// the counting, so that a program can have one phase of it counted alone.
#ifndef BOSK_LAB_MARKERS_H
#define BOSK_LAB_MARKERS_H

#define BOSK_LAB_BEGIN 0x001    // all counts to zero, count from here
#define BOSK_LAB_END 0x002      // stop and write the result; nothing where nothing is counted
#define BOSK_LAB_OBJECTS 0x003  // the file of objects has changed
#define BOSK_LAB_CHECKED 0x0ff  // the end of what a BOSK_LAB_CHECK began
// From here to BOSK_LAB_CHECKED this CPU of node `node` touches memory of the same node only.
#define BOSK_LAB_CHECK(node) (0x100 + (node))

// The operand's upper 20 bits; the code is below them.
#define BOSK_LAB_MARK_BASE 0x0b05c000
#define BOSK_LAB_MARK_MASK 0x00000fff

// nopl disp32(%rax): 0f 1f 80 and the displacement, 7 bytes.
#if defined(__x86_64__)
#define BOSK_LAB_MARK(code)                              \
  __asm__ volatile(".byte 0x0f, 0x1f, 0x80\n\t.long %c0" \
                   :                                     \
                   : "i"(BOSK_LAB_MARK_BASE + (code))    \
                   : "memory")
#else
#define BOSK_LAB_MARK(code) ((void)(code))
#endif

#endif
