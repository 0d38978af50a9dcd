// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Definition of the thread-local block.
#include "context/thread_block.h"

namespace bosk::context {

extern "C" {
constinit thread_local ThreadBlock bosk_thread_block{};
}

}  // namespace bosk::context
