// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The plugin's arguments, and its results.
#include "bosk/lab/locality.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <utility>

#include "bosk/lab/error.h"

namespace bosk::tools::lab {
namespace {

namespace fs = std::filesystem;

// What QEMU's processor tells the guest of its L2 and L3.
constexpr const char* kQemuOwn = "512K/16";
constexpr const char* kQemuShared = "16M/16";
constexpr unsigned kLine = 64;
constexpr const char* kObjects = "objects.txt";

struct CacheWord {
  uint64_t bytes;
  unsigned ways;
};

/// "512K/16". Throws LabError.
CacheWord parse_cache(const std::string& word, const std::string& all) {
  const std::regex form(R"((\d{1,9})([KMG]?)/(\d{1,2}))");
  std::smatch parts;
  if (!std::regex_match(word, parts, form)) {
    throw LabError(kUsage, fmt::format("--caches {}: not SIZE/WAYS,SIZE/WAYS, such as {},{}", all,
                                       kQemuOwn, kQemuShared));
  }
  const std::string unit = parts[2];
  const unsigned shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : 0;
  const CacheWord cache{std::stoull(parts[1]) << shift,
                        static_cast<unsigned>(std::stoul(parts[3]))};
  if (cache.ways == 0 || cache.ways > 64) {
    throw LabError(kUsage, fmt::format("--caches {}: a cache has 1 to 64 ways", all));
  }
  if (cache.bytes == 0 || cache.bytes > uint64_t{1} << 32 ||
      cache.bytes % (uint64_t{kLine} * cache.ways) != 0) {
    throw LabError(kUsage, fmt::format("--caches {}: {} is not whole sets of {} lines of {} bytes, "
                                       "4G at most",
                                       all, word, cache.ways, kLine));
  }
  return cache;
}

/// A file's content; empty if it cannot be read.
std::string content_of(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// The number of an XML element's attribute, or 0.
uint64_t attribute(const std::string& element, const std::string& name) {
  std::smatch found;
  if (!std::regex_search(element, found, std::regex(" " + name + "=\"(\\d{1,18})\""))) return 0;
  return std::stoull(found[1]);
}

/// FOLDER/locality.json, or that of a later counting.
fs::path result_file(const fs::path& folder, unsigned run, const char* ending) {
  return folder / (run == 1 ? fmt::format("locality.{}", ending)
                            : fmt::format("locality-{}.{}", run, ending));
}

void remove_old(const fs::path& folder) {
  std::error_code error;
  for (unsigned run = 1; fs::exists(result_file(folder, run, "json"), error); ++run) {
    fs::remove(result_file(folder, run, "json"), error);
    fs::remove(result_file(folder, run, "txt"), error);
  }
  fs::remove(folder / kObjects, error);
}

/// The nodes whose check failed, "1 and 2".
std::string wrong_nodes(const std::string& json) {
  std::string wrong;
  const nlohmann::json result = nlohmann::json::parse(json, nullptr, false);
  if (!result.is_object()) return wrong;
  unsigned node = 0;
  for (const auto& each : result.value("nodes", nlohmann::json::array())) {
    if (each.value("check", "") == "wrong") {
      wrong += (wrong.empty() ? "" : " and ") + std::to_string(node);
    }
    ++node;
  }
  return wrong;
}

}  // namespace

std::string plugin_caches(const std::string& words) {
  const size_t comma = words.find(',');
  const std::string first = words.substr(0, comma);
  const std::string second = comma == std::string::npos ? "" : words.substr(comma + 1);
  const CacheWord own = parse_cache(first, words);
  const CacheWord shared = parse_cache(second, words);
  return fmt::format("private={}/{},shared={}/{}", own.bytes, own.ways, shared.bytes, shared.ways);
}

std::string caches_like(const std::string& xml) {
  const std::string text = content_of(xml);
  CacheWord own{0, 0};
  CacheWord shared{0, 0};
  uint64_t nodes = 0;
  const std::regex object(R"x(<object type="(L2Cache|L3Cache|NUMANode)"[^>]*>)x");
  for (std::sregex_iterator it(text.begin(), text.end(), object), end; it != end; ++it) {
    const std::string kind = (*it)[1];
    if (kind == "NUMANode") {
      ++nodes;
      continue;
    }
    CacheWord& cache = kind == "L2Cache" ? own : shared;
    const std::string element = it->str();
    // The first L2 stands for all; the L3s of a node count as one.
    if (kind == "L3Cache" || cache.bytes == 0) cache.bytes += attribute(element, "cache_size");
    if (cache.ways == 0) {
      cache.ways =
          static_cast<unsigned>(std::min<uint64_t>(attribute(element, "cache_associativity"), 64));
    }
  }
  shared.bytes /= std::max<uint64_t>(nodes, 1);
  const auto word = [](CacheWord cache, const char* otherwise) -> std::string {
    if (cache.bytes == 0) return otherwise;
    const unsigned ways = cache.ways == 0 ? 16 : cache.ways;  // not told, or any line anywhere
    const uint64_t set = uint64_t{kLine} * ways;
    return fmt::format("{}/{}", std::max(cache.bytes / set, uint64_t{1}) * set, ways);
  };
  return word(own, kQemuOwn) + "," + word(shared, kQemuShared);
}

std::string plugin_machine(const Shape& shape) {
  std::string cpus;
  std::string memory;
  for (const NodeShape& node : shape.nodes) {
    const bool first = &node == &shape.nodes.front();
    if (!first) cpus += '/', memory += '/';
    if (node.cpus > 0) {
      cpus += fmt::format("{}-{}", node.first_cpu, node.first_cpu + node.cpus - 1);
    }
    memory += std::to_string(node.bytes >> 20);
  }
  return fmt::format("cpus={},memory={},threads={}", cpus, memory, shape.threads);
}

Locality::Locality(const LocalityWish& wish, fs::path library, fs::path output)
    : library_(std::move(library)), folder_(std::move(output)), keep_(!folder_.empty()) {
  bool caches = !wish.caches.empty();
  for (const std::string& word : wish.what) {
    if (word == "caches") {
      caches = true;
    } else if (word == "objects") {
      objects_ = true;
    } else if (word != "accesses" && word != "true") {
      throw LabError(kUsage,
                     fmt::format("--locality={}: there are accesses, caches and objects", word));
    }
  }
  if (caches) {
    caches_ = plugin_caches(wish.caches.empty() ? caches_like(wish.like) : wish.caches);
  }
  for (const char* file : {"lab-locality.so", "lab-count"}) {
    if (access((library_ / file).c_str(), R_OK) == 0) continue;
    throw LabError(kFailure, fmt::format("{}: {}; build or install it beside the tool",
                                         (library_ / file).string(), std::strerror(errno)));
  }
  if (!keep_) {
    std::string name = (fs::temp_directory_path() / "bosk-locality.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw LabError(kFailure, fmt::format("{}: {}", name, std::strerror(errno)));
    }
    folder_ = name;
  }
  remove_old(folder_);
}

Locality::~Locality() {
  std::error_code error;
  if (!keep_) fs::remove_all(folder_, error);
}

void Locality::prepare(QemuCommand* qemu, Job* job) const {
  std::vector<std::string> arguments = {"file=" + (library_ / "lab-locality.so").string(),
                                        "out=" + folder_.string()};
  if (objects_) arguments.push_back("objects=" + (folder_ / kObjects).string());
  std::string text;
  for (const std::string& argument : arguments) {
    for (const char c : argument) text += c == ',' ? std::string(2, c) : std::string(1, c);
    text += ',';
  }
  text += plugin_machine(qemu->shape);
  if (!caches_.empty()) text += "," + caches_;
  qemu->extra.words.insert(qemu->extra.words.end(), {"-plugin", text});

  if (objects_) {
    job->environment.push_back("BOSK_LAB_OBJECTS=" + (folder_ / kObjects).string());
    if (!keep_) qemu->writable.push_back({"locality", folder_.string()});
  }
  const std::string launcher = (library_ / "lab-count").string();
  job->environment.push_back("BOSK_LAB_COUNT=" + launcher);
  job->command.insert(job->command.begin(), launcher);
}

int Locality::report(int status) const {
  unsigned run = 1;
  for (std::error_code error; fs::exists(result_file(folder_, run, "json"), error); ++run) {
    if (run > 1) fmt::print(stderr, "\n");
    fmt::print(stderr, "{}", content_of(result_file(folder_, run, "txt")));
    const std::string wrong = wrong_nodes(content_of(result_file(folder_, run, "json")));
    if (!wrong.empty()) {
      throw LabError(kFailure,
                     fmt::format("the plugin sees CPUs or memory of node {} elsewhere: it "
                                 "does not know this QEMU, its counts are wrong",
                                 wrong));
    }
    if (keep_) fmt::print(stderr, "in {}\n", result_file(folder_, run, "json").string());
  }
  if (run > 1) return status;
  fmt::print(stderr,
             "bosk: --locality: nothing was counted: the command did not start, or QEMU was "
             "ended before it could write\n");
  return status == 0 ? kFailure : status;
}

}  // namespace bosk::tools::lab
