// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What was learnt, for programs: "learnt" of docs/report.schema.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bosk/learn/learn_page.h"

namespace bosk::tools {

/// `machine`: as for learn_page(). O(T²), as the mapping it would choose is.
nlohmann::ordered_json learn_json(const Learnt& learnt, affinity::Learner* learner,
                                  const topology::Machine* machine);

/// As write_text().
int write_json(const std::string& name, const nlohmann::ordered_json& json);

/// Of a program that was not observed: `why` not.
nlohmann::ordered_json off_json(const std::string& program, const std::string& why);

}  // namespace bosk::tools
