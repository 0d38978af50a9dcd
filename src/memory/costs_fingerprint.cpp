// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which machine this is, as far as costs of memory depend on it, and where its file is.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "memory/costs_file.h"

namespace bosk::memory {
namespace {

/// FNV-1a: only to tell machines apart, not against anybody.
class Hash {
 public:
  void text(const char* at, size_t length) {
    for (size_t i = 0; i < length; ++i) {
      value_ = (value_ ^ static_cast<unsigned char>(at[i])) * UINT64_C(0x100000001b3);
    }
  }
  void text(const char* at) { text(at, strlen(at) + 1); }
  void number(uint64_t value) { text(reinterpret_cast<const char*>(&value), sizeof value); }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = UINT64_C(0xcbf29ce484222325);
};

/// The beginning of a small file, NUL-terminated; false: it cannot be read.
bool read_small(const char* path, char* text, size_t size) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  size_t used = 0;
  ssize_t got;
  while (used < size - 1 && (got = read(file, text + used, size - 1 - used)) > 0)
    used += static_cast<size_t>(got);
  close(file);
  text[used] = '\0';
  return true;
}

/// The line that begins so, or "".
void hash_line(Hash* hash, const char* text, const char* begin) {
  const char* line = strstr(text, begin);
  hash->text(line == nullptr ? "" : line, line == nullptr ? 1 : strcspn(line, "\n"));
}

/// The largest number of a node: at the end of a list like "0-1,4".
uint32_t last_node(const char* root) {
  char path[1024];
  char text[2048];
  snprintf(path, sizeof path, "%s/sys/devices/system/node/online", root);
  if (!read_small(path, text, sizeof text)) return 0;
  size_t at = strcspn(text, "\n");
  while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') --at;
  return static_cast<uint32_t>(strtoul(text + at, nullptr, 10)) % 1024;
}

}  // namespace

uint64_t machine_fingerprint(const char* root) {
  if (root == nullptr) root = "";
  Hash hash;
  char path[1024];
  char text[2048];
  snprintf(path, sizeof path, "%s/proc/cpuinfo", root);
  if (read_small(path, text, sizeof text)) {
    // x86; elsewhere the part number says as much.
    for (const char* word : {"model name", "stepping", "CPU implementer", "CPU part"})
      hash_line(&hash, text, word);
  }
  // Migration is the kernel's work: another release may do it otherwise.
  utsname kernel{};
  if (*root == '\0' && uname(&kernel) == 0) hash.text(kernel.release);
  const uint32_t last = last_node(root);
  for (uint32_t node = 0; node <= last; ++node) {
    for (const char* name : {"cpulist", "distance"}) {
      snprintf(path, sizeof path, "%s/sys/devices/system/node/node%u/%s", root, node, name);
      if (!read_small(path, text, sizeof text)) break;
      hash.number(node);
      hash.text(text);
    }
    snprintf(path, sizeof path, "%s/sys/devices/system/node/node%u/meminfo", root, node);
    if (!read_small(path, text, sizeof text)) continue;
    // Rounded: what the kernel keeps for itself differs from start to start.
    const char* total = strstr(text, "MemTotal:");
    if (total != nullptr)
      hash.number((strtoull(total + strlen("MemTotal:"), nullptr, 10) + (1 << 17)) >> 18);
  }
  return hash.value();
}

bool costs_path(uint64_t fingerprint, char* path, size_t size, topology::Error* error) {
  const char* folder = getenv("XDG_CACHE_HOME");
  const char* below = "";
  // The specification of XDG: relative ones are ignored.
  if (folder == nullptr || folder[0] != '/') {
    folder = getenv("HOME");
    below = "/.cache";
  }
  if (folder == nullptr || folder[0] != '/')
    return error->set("neither XDG_CACHE_HOME nor HOME is set: costs of memory cannot be kept");
  const int length = snprintf(path, size, "%s%s/bosk/memory-costs-%016lx", folder, below,
                              static_cast<unsigned long>(fingerprint));
  if (length < 0 || static_cast<size_t>(length) >= size)
    return error->set("the path of the cache folder is too long: costs of memory cannot be kept");
  return true;
}

}  // namespace bosk::memory
