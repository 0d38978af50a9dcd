// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads ACC_DEVICE_TYPE, ACC_DEVICE_NUM and GOMP_OPENACC_DIM.
#include "abi/goacc/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "base/mapped_array.h"
#include "base/message.h"
#include "base/parse.h"
#include "base/publish_once.h"

namespace bosk::acc {
namespace {

constinit base::PublishOnce<Settings> published;

const Settings& load() {
  // errno is the program's.
  const int saved = errno;
  void* room = base::map_pages(sizeof(Settings));
  if (room == nullptr) base::die(1, "out of memory while reading the environment");
  auto* made = new (room) Settings{};
  bool bad_number = false;
  if (const char* type = getenv("ACC_DEVICE_TYPE"); type != nullptr && *type != '\0') {
    // A copy: setenv() may take the text away.
    made->device_type = base::keep_text(type, strlen(type));
  }
  if (const char* number = getenv("ACC_DEVICE_NUM"); number != nullptr) {
    uint64_t n = 0;
    bad_number = !base::parse_number(number, 0, INT32_MAX, &n);
    if (!bad_number) made->device_number = static_cast<int>(n);
  }
  if (const char* dimensions = getenv("GOMP_OPENACC_DIM"); dimensions != nullptr) {
    parse_dimensions(dimensions, made->dimension);
  }
  // Who comes second has read the same; a page is lost at most once per racing thread.
  if (published.publish(made) && bad_number) {
    base::gomp_error("Invalid value for environment variable ACC_DEVICE_NUM");
  }
  errno = saved;
  return *published.get();
}

}  // namespace

const Settings& settings() {
  const Settings* known = published.get();
  return known != nullptr ? *known : load();
}

void parse_dimensions(const char* text, uint32_t (&dimension)[kDimensions]) {
  base::TextReader reader(text);
  for (uint32_t& value : dimension) {
    uint64_t n;
    if (reader.take_unsigned(&n)) {
      if (n > UINT32_MAX) return;
      value = static_cast<uint32_t>(n);
    }
    // Not take(): a blank ends the list.
    if (*reader.position() != ':') return;
    reader.take(':');
  }
}

}  // namespace bosk::acc
