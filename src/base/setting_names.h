// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Variables of the environment that look like bosk's and are not.
#pragma once

#include "base/message_log.h"

namespace bosk::base {

/// Notes a line for each variable BOSK_… that is nearly one of bosk's, with the name that was probably meant. Other names are somebody
/// else's: BOSK_ROOT, BOSK_HOME and the like of modules and package managers, those of our tests and of ./dev.
void note_unknown_settings(MessageLog* log);

/// The setting whose name is nearest to `name`; null: none is near.
const char* nearest_setting(const char* name);

}  // namespace bosk::base
