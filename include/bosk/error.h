/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* What functions of bosk return: 0, or one of these. */
#ifndef BOSK_ERROR_H
#define BOSK_ERROR_H

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

#ifdef __cplusplus
}
#endif
#endif
