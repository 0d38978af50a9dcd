// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data of the host device: its memory is the program's, so that everything is present, nothing is
// copied, and nobody counts references. What is left is to check arguments and to attach the thread.
#pragma once

#include <stddef.h>

namespace bosk::acc {

/// acc_copyin, acc_create: the address on the device. Ends the program for null and for 0 bytes.
void* enter_data(void* data, size_t size);
/// acc_copyout, acc_delete.
void exit_data();
/// acc_update_device, acc_update_self.
void update_data();
bool is_present(const void* data, size_t size);

}  // namespace bosk::acc
