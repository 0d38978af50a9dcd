/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What functions of bosk return: 0, or one of these. */
#ifndef BOSK_ERROR_H
#define BOSK_ERROR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bosk_error {
  BOSK_OK = 0,
  BOSK_EINVAL = -1, /* an argument is null, out of range, or an object that was never initialised */
  BOSK_ENOMEM = -2, /* no memory, or the system gives no more threads */
  BOSK_ESTALE = -3, /* the thread or bubble does not exist, not any more, or not in this process */
  BOSK_EBUSY = -4,  /* it is in use: held, running, not empty */
  BOSK_EDEADLK = -5,   /* the caller would wait for itself */
  BOSK_EPERM = -6,     /* the caller is not the one who may do this */
  BOSK_ENOTSUP = -7,   /* cannot be had on this system or at this place */
  BOSK_ETIMEDOUT = -8, /* the time is over */
  BOSK_EAGAIN = -9,    /* not now: try again */
  BOSK_ESTATE =
      -10, /* not in the state that it takes: woken already, detached, joined by another ... */
  BOSK_ELOOP = -11,  /* a bubble would be inside of itself */
  BOSK_ENOENT = -12, /* there is nothing of that name */
  BOSK_EIO = -13,    /* a system call failed; errno says why */
  /* of memory (bosk/memory.h) */
  BOSK_EOVERLAP = -14,  /* a part of the range belongs to another area */
  BOSK_EUNMAPPED = -15, /* a part of the range is not mapped */
  BOSK_ENODE = -16,     /* no such NUMA node, or it has no memory that the process may use */
  BOSK_ENOAREA = -17    /* no area there: never registered or allocated, or given back already */
};

/** What an error code means: one line, constant, in English. Never null; for numbers that are no code a
 *  line that says so. Any thread at any time. */
const char* bosk_strerror(int error);

/** What the last function that returned a code to the calling thread said, with what it was about, for instance
 * ```text
 *  bosk_bubble_wake: bubble 0x400000002, level "wurst": there is nothing of that name
 * ```
 *  in text[0 ... size-1]: one line without a newline, in English, cut if it is longer, with a NUL at its end. It begins with
 *  the name of the function and names level, policy, address, node, thread and bubble, as far as there are such. Returns the
 *  length of the whole line, like snprintf; 0, and "": there is none. Functions that succeed leave it as it is, and so do
 *  those of bosk/sync.h and bosk/topology.h (but for bosk_topo_level()), whose codes have no more to say. Ask at once: the
 *  line is the thread's own, but with hundreds of threads that fail it may be lost, and there is none then.
 *  BOSK_EINVAL: `text` is null, or `size` is 0. */
int bosk_last_error(char* text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
