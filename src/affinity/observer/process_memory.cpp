// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace bosk::affinity {
namespace {

bool take(std::string_view* text, int base, uint64_t* number) {
  const auto [end, error] =
      std::from_chars(text->data(), text->data() + text->size(), *number, base);
  if (error != std::errc()) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

bool take(std::string_view* text, char wanted) {
  if (!text->starts_with(wanted)) return false;
  text->remove_prefix(1);
  return true;
}

bool is_own(std::string_view name) {
  return name.empty() || name == "[heap]" || name.starts_with("[anon:");
}

bool is_plain_file(std::string_view name) {
  // Special mappings, and stacks: armed, each first write in a deeper call would fault, and nobody else writes there.
  if (name.starts_with('[')) return false;
  // Huge pages of their own file system are one fault each, and would have to be split.
  if (name.starts_with("/anon_hugepage") || name.find("hugepages/") != std::string_view::npos)
    return false;
  return !name.starts_with("/dev/") || name.starts_with("/dev/shm/") ||
         name.starts_with("/dev/zero");
}

}  // namespace

bool parse_mapping(std::string_view line, MappedArea* area) {
  uint64_t major = 0;
  uint64_t minor = 0;
  if (!take(&line, 16, &area->begin) || !take(&line, '-') || !take(&line, 16, &area->end) ||
      !take(&line, ' ') || line.size() < 5)
    return false;
  const bool writable = line[1] == 'w';
  const bool shared = line[3] == 's';
  line.remove_prefix(5);
  if (!take(&line, 16, &area->offset) || !take(&line, ' ') || !take(&line, 16, &major) ||
      !take(&line, ':') || !take(&line, 16, &minor) || !take(&line, ' ') ||
      !take(&line, 10, &area->inode))
    return false;
  const size_t begin = line.find_first_not_of(' ');
  const std::string_view name =
      begin == std::string_view::npos ? std::string_view() : line.substr(begin);
  if (!shared && is_own(name))
    area->armed = MappedArea::Armed::kWithAll;  // also PROT_NONE: it may become memory at any time
  else
    area->armed =
        writable && is_plain_file(name) ? MappedArea::Armed::kAsOne : MappedArea::Armed::kNever;
  area->device = major << 32 | minor;
  if (!shared) area->device = area->inode = area->offset = 0;
  return area->begin < area->end;
}

std::vector<MappedArea> mapped_areas(pid_t process) {
  std::vector<MappedArea> areas;
  const std::string name = "/proc/" + std::to_string(process) + "/maps";
  const int file = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return areas;
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  close(file);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    MappedArea area;
    if (parse_mapping(std::string_view(text).substr(at, end - at), &area)) areas.push_back(area);
    at = end + 1;
  }
  return areas;
}

const MappedArea* find_area(const std::vector<MappedArea>& areas, uint64_t address) {
  const auto after = std::ranges::upper_bound(areas, address, std::less<>(), &MappedArea::begin);
  if (after == areas.begin()) return nullptr;
  const MappedArea& area = *(after - 1);
  return address < area.end ? &area : nullptr;
}

std::vector<Range> ranges_to_register(const std::vector<MappedArea>& before,
                                      const std::vector<MappedArea>& areas) {
  // Nothing is mapped below that.
  constexpr uint64_t kLowest = 0x10000;
  const auto was_there = [&](const MappedArea& area) {
    const MappedArea* old = find_area(before, area.begin);
    return old != nullptr && old->begin == area.begin && old->end == area.end &&
           old->armed == area.armed;
  };
  std::vector<Range> ranges;
  Range range = {kLowest, 0};
  bool is_sure = true;  // the mapping below the range was there before
  for (const MappedArea& area : areas) {
    if (area.armed == MappedArea::Armed::kWithAll) {
      range.end = area.end;
      continue;
    }
    const bool is_wall = was_there(area);
    if (range.end != 0 && is_sure && is_wall) ranges.push_back({range.begin, area.begin});
    if (is_wall && area.armed == MappedArea::Armed::kAsOne)
      ranges.push_back({area.begin, area.end});
    range = {area.end, 0};
    is_sure = is_wall;
  }
  return ranges;
}

std::string status_line(const std::string& folder, const std::string& name) {
  std::ifstream file(folder + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  return "";
}

bool has_open(pid_t process, const std::function<bool(std::string_view target)>& is_one) {
  constexpr int kMostFiles = 4096;
  std::error_code error;
  int files = 0;
  for (auto at =
           std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd", error);
       !error && at != std::filesystem::directory_iterator() && files < kMostFiles;
       at.increment(error), ++files) {
    char target[64];
    const ssize_t size = readlink(at->path().c_str(), target, sizeof target);
    if (size > 0 && is_one(std::string_view(target, static_cast<size_t>(size)))) return true;
  }
  return false;
}

bool has_userfaultfd(pid_t process) {
  return has_open(process,
                  [](std::string_view target) { return target == "anon_inode:[userfaultfd]"; });
}

}  // namespace bosk::affinity
