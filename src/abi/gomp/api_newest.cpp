// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Routines of OpenMP 6.0 and 6.1 that GCC's trunk has: tools, which there are none of; distances of devices;
// and teams and leagues in several dimensions, of which there is one, number 0.
#include <limits.h>
#include <stdint.h>

#include "abi/gomp/export.h"
#include "omp/environment.h"
#include "omp/host_device.h"
#include "omp/host_teams.h"
#include "omp/routines.h"

using namespace bosk::omp;

namespace {

constexpr int kNoTool = -2;  // omp_control_tool_notool
constexpr int kNoDevice = -1;

bool is_there(int device) {
  return is_host(device == kDefaultDevice ? known_icvs().default_device : device);
}

/// What a device may have in a dimension: as many as one likes in the one there is.
int supported(int device, int dimension) {
  if (!is_there(device)) return 0;
  return dimension == 0 ? INT_MAX : 1;
}

int supported_dimensions(int device) { return is_there(device) ? 1 : 0; }

}  // namespace

BOSK_EXPORT int omp_control_tool(int /*command*/, int /*modifier*/, void* /*argument*/) {
  return kNoTool;
}
BOSK_EXPORT int32_t omp_control_tool_(const void*, const void*) { return kNoTool; }
BOSK_EXPORT int32_t omp_control_tool_8_(const void*, const void*) { return kNoTool; }

// From the host; -1: there is no such device.
BOSK_EXPORT void omp_get_device_distances(int count, const int* devices, int* distances) {
  for (int i = 0; i < count; ++i) distances[i] = is_there(devices[i]) ? 0 : kNoDevice;
}

BOSK_EXPORT int omp_get_num_threads_dim(int dimension) {
  return dimension == 0 ? num_threads() : 1;
}
BOSK_EXPORT int omp_get_thread_num_dim(int dimension) { return dimension == 0 ? thread_num() : 0; }
BOSK_EXPORT int omp_get_num_teams_dim(int dimension) {
  return dimension == 0 ? clamped_int(league_position().num_teams) : 1;
}
BOSK_EXPORT int omp_get_team_num_dim(int dimension) {
  return dimension == 0 ? clamped_int(league_position().team_num) : 0;
}
BOSK_EXPORT int omp_get_thread_limit_dim(int dimension) {
  return dimension == 0 ? clamped_int(known_icvs().thread_limit) : 1;
}

BOSK_EXPORT int omp_get_supported_teams_dim(int device, int dimension) {
  return supported(device, dimension);
}
BOSK_EXPORT int omp_get_supported_threads_dim(int device, int dimension) {
  return supported(device, dimension);
}

// Of the hardware or not: there is one either way.
BOSK_EXPORT int omp_get_supported_active_league_dims(int device, int /*native*/) {
  return supported_dimensions(device);
}
BOSK_EXPORT int omp_get_supported_active_team_dims(int device, int /*native*/) {
  return supported_dimensions(device);
}
BOSK_EXPORT int32_t omp_get_supported_active_league_dims_(const int32_t* device, const void*) {
  return supported_dimensions(*device);
}
BOSK_EXPORT int32_t omp_get_supported_active_team_dims_(const int32_t* device, const void*) {
  return supported_dimensions(*device);
}
