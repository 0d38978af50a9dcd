// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk_strerror() and bosk_last_error().
#include "abi/gomp/export.h"
#include "bosk/error.h"
#include "threads/last_error.h"

BOSK_EXPORT const char* bosk_strerror(int error) {
  switch (error) {
    case BOSK_OK:
      return "no error";
    case BOSK_EINVAL:
      return "an argument is null, out of range or was never initialised";
    case BOSK_ENOMEM:
      return "no memory, or no more threads from the system";
    case BOSK_ESTALE:
      return "the thread or bubble does not exist, not any more, or not in this forked child";
    case BOSK_EBUSY:
      return "it is in use: held, running, open or not empty";
    case BOSK_EDEADLK:
      return "the caller would wait for itself";
    case BOSK_EPERM:
      return "the caller is not the one who may do this";
    case BOSK_ENOTSUP:
      return "cannot be had on this system or at this place";
    case BOSK_ETIMEDOUT:
      return "the time is over";
    case BOSK_EAGAIN:
      return "not possible at the moment; try again";
    case BOSK_ESTATE:
      return "not in the state that this takes, for instance woken or joined already";
    case BOSK_ELOOP:
      return "a bubble would be inside of itself";
    case BOSK_ENOENT:
      return "there is nothing of that name";
    case BOSK_EIO:
      return "a system call failed; errno says why";
    case BOSK_EOVERLAP:
      return "a part of the range belongs to another area";
    case BOSK_EUNMAPPED:
      return "a part of the range is not mapped";
    case BOSK_ENODE:
      return "no such NUMA node, or it has no memory that this process may use";
    case BOSK_ENOAREA:
      return "no area there: it was never registered or allocated, or was given back already";
    default:
      return "no error code of bosk";
  }
}

BOSK_EXPORT int bosk_last_error(char* text, size_t size) {
  if (text == nullptr || size == 0) return BOSK_EINVAL;
  return static_cast<int>(bosk::threads::last_failure(text, size));
}
