// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Routines of devices and their properties, C and Fortran.
#include <string.h>

#include "abi/goacc/device.h"
#include "abi/gomp/export.h"
#include "base/message.h"

using namespace bosk::acc;

namespace {

// acc_device_property_t.
enum Property : int {
  kMemory = 1,
  kFreeMemory = 2,
  kName = 0x10001,
  kVendor = 0x10002,
  kDriver = 0x10003,
};
constexpr int kStringProperty = 0x10000;

// False: the property is one of the other routine's.
bool find_property(int number, int type, int property, bool string) {
  require_known(type);
  if (((property & kStringProperty) != 0) != string) return false;
  require_host(type);
  ensure_attached();
  if (number < 0 || number >= kHostDevices) {
    bosk::base::gomp_fatal("device %d out of range", number);
  }
  return true;
}

}  // namespace

BOSK_EXPORT int acc_get_num_devices(int type) {
  require_known(type);
  return type == kHost || (type == kDefault && default_is_host()) ? kHostDevices : 0;
}
BOSK_EXPORT int acc_get_num_devices_h_(const int* type) { return acc_get_num_devices(*type); }

BOSK_EXPORT void acc_init(int type) { init(type); }
BOSK_EXPORT void acc_init_h_(const int* type) { init(*type); }
BOSK_EXPORT void acc_shutdown(int type) { shutdown(type); }
BOSK_EXPORT void acc_shutdown_h_(const int* type) { shutdown(*type); }

BOSK_EXPORT void acc_set_device_type(int type) { set_device_type(type); }
BOSK_EXPORT void acc_set_device_type_h_(const int* type) { set_device_type(*type); }
BOSK_EXPORT int acc_get_device_type() { return device_type(); }
BOSK_EXPORT_ALIAS(acc_get_device_type) int acc_get_device_type_h_() noexcept;

BOSK_EXPORT void acc_set_device_num(int number, int type) { set_device_number(number, type); }
BOSK_EXPORT void acc_set_device_num_h_(const int* number, const int* type) {
  set_device_number(*number, *type);
}
BOSK_EXPORT int acc_get_device_num(int type) {
  require_host(type);
  return device_number();
}
BOSK_EXPORT int acc_get_device_num_h_(const int* type) { return acc_get_device_num(*type); }

// Compiled code seldom asks: gcc knows the answer.
BOSK_EXPORT int acc_on_device(int type) { return type == kHost || type == kNone ? 1 : 0; }
BOSK_EXPORT int acc_on_device_h_(const int* type) { return acc_on_device(*type); }

// The numbers of the host are not known (0). Its strings are libgomp's: programs may choose by them.
BOSK_EXPORT size_t acc_get_property(int number, int type, int property) {
  find_property(number, type, property, false);
  return 0;
}
BOSK_EXPORT const char* acc_get_property_string(int number, int type, int property) {
  if (!find_property(number, type, property, true)) return nullptr;
  switch (property) {
    case kName:
      return "GOMP";
    case kVendor:
      return "GNU";
    case kDriver:
      return "1.0";
    default:
      return nullptr;
  }
}

// These have arguments by value in Fortran too.
BOSK_EXPORT size_t acc_get_property_h_(int number, int type, int property) {
  return acc_get_property(number, type, property);
}
BOSK_EXPORT void acc_get_property_string_h_(int number, int type, int property, char* text,
                                            size_t room) {
  const char* found = acc_get_property_string(number, type, property);
  const size_t length = found != nullptr ? strlen(found) : 0;
  const size_t kept = length < room ? length : room;
  if (kept != 0) memcpy(text, found, kept);
  if (room > kept) memset(text + kept, ' ', room - kept);
}
