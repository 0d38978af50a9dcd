// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The environment variables of OpenACC: read once per process, at the first need.
#pragma once

#include <stdint.h>

namespace bosk::acc {

/// Gangs, workers, vector lanes.
constexpr int kDimensions = 3;

struct Settings {
  const char* device_type;          ///< ACC_DEVICE_TYPE; null: not given, or empty
  int device_number;                ///< ACC_DEVICE_NUM, 0 if not given
  uint32_t dimension[kDimensions];  ///< GOMP_OPENACC_DIM; 0: not given
};

const Settings& settings();

/// `n[:n[:n]]`, each may be empty. What follows the first thing that is no number is not looked at:
/// libgomp has never complained about this variable.
void parse_dimensions(const char* text, uint32_t (&dimension)[kDimensions]);

}  // namespace bosk::acc
