/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
   Marks: instructions that tell `bosk lab --locality` which phase of a program is to be counted (docs/locality.md).

       BOSK_LAB_MARK(BOSK_LAB_BEGIN);
       solve();
       BOSK_LAB_MARK(BOSK_LAB_END);

   Without marks the whole command is counted. A mark is a NOP with an operand that no compiler makes: it does nothing
   on a processor, needs no privilege and no library, touches no memory, and may be run by any thread at any time, in
   signal handlers too. The lab's plugin finds it when QEMU translates it, and is called when it runs. The
   compiler moves no access to memory across it. On processors other than x86-64, which the lab does not count on, it
   is nothing at all. For C99, C++11 and later, with GCC and clang. */
#ifndef BOSK_MARKERS_H
#define BOSK_MARKERS_H

/** What a mark can say. Once for the whole machine, whichever thread runs it; there is no error. */
#define BOSK_LAB_BEGIN 0x001 /* all counts to zero, count from here */
#define BOSK_LAB_END 0x002   /* stop and write the result; nothing where nothing is counted */
/** The file that BOSK_LAB_OBJECTS names has changed, look at it at once. Else it is looked at by and by. */
#define BOSK_LAB_OBJECTS 0x003
/** From here to BOSK_LAB_CHECKED this CPU of node `node` (0 ... 63) touches memory of the same node only. For what starts
    the command, which shows the plugin each node that way; programs have no use for it. */
#define BOSK_LAB_CHECK(node) (0x100 + (node))
#define BOSK_LAB_CHECKED 0x0ff

/** The upper 20 bits of the operand; the code is below them. */
#define BOSK_LAB_MARK_BASE 0x0b05c000
#define BOSK_LAB_MARK_MASK 0x00000fff

/** The mark with this code, which is a constant. */
#if defined(__x86_64__)
/* nopl disp32(%rax): 0f 1f 80 and the displacement, 7 bytes. */
#define BOSK_LAB_MARK(code)                              \
  __asm__ volatile(".byte 0x0f, 0x1f, 0x80\n\t.long %c0" \
                   :                                     \
                   : "i"(BOSK_LAB_MARK_BASE + (code))    \
                   : "memory")
#else
#define BOSK_LAB_MARK(code) ((void)(code))
#endif

#endif
