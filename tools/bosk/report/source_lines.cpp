// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bosk/report/source_lines.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#if __has_include(<elfutils/libdwfl.h>)
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#define BOSK_HAVE_LIBDW
#endif

namespace bosk::tools {

#ifdef BOSK_HAVE_LIBDW

namespace {

/// The functions of libdw that are used here. None: it is not installed.
struct Libdw {
  decltype(&dwfl_begin) begin = nullptr;
  decltype(&dwfl_end) end = nullptr;
  decltype(&dwfl_report_offline) report_offline = nullptr;
  decltype(&dwfl_report_end) report_end = nullptr;
  decltype(&dwfl_module_info) module_info = nullptr;
  decltype(&dwfl_module_getsrc) module_getsrc = nullptr;
  decltype(&dwfl_lineinfo) lineinfo = nullptr;
  decltype(&dwfl_standard_find_debuginfo) find_debuginfo = nullptr;
  decltype(&dwfl_build_id_find_elf) find_elf = nullptr;
  decltype(&dwfl_offline_section_address) section_address = nullptr;
  decltype(&dwfl_module_addrdie) addrdie = nullptr;
  decltype(&dwarf_getsrclines) getsrclines = nullptr;
  decltype(&dwarf_onesrcline) onesrcline = nullptr;
  decltype(&dwarf_lineaddr) lineaddr = nullptr;
  decltype(&dwarf_lineno) lineno = nullptr;
  decltype(&dwarf_linesrc) linesrc = nullptr;
  decltype(&dwarf_lineendsequence) lineendsequence = nullptr;
  bool is_there = false;

  Libdw() {
    // Never closed: it lives as long as the tool.
    void* library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    is_there = get(library, "dwfl_begin", &begin) && get(library, "dwfl_end", &end) &&
               get(library, "dwfl_report_offline", &report_offline) &&
               get(library, "dwfl_report_end", &report_end) &&
               get(library, "dwfl_module_info", &module_info) &&
               get(library, "dwfl_module_getsrc", &module_getsrc) &&
               get(library, "dwfl_lineinfo", &lineinfo) &&
               get(library, "dwfl_standard_find_debuginfo", &find_debuginfo) &&
               get(library, "dwfl_build_id_find_elf", &find_elf) &&
               get(library, "dwfl_offline_section_address", &section_address) &&
               get(library, "dwfl_module_addrdie", &addrdie) &&
               get(library, "dwarf_getsrclines", &getsrclines) &&
               get(library, "dwarf_onesrcline", &onesrcline) &&
               get(library, "dwarf_lineaddr", &lineaddr) && get(library, "dwarf_lineno", &lineno) &&
               get(library, "dwarf_linesrc", &linesrc) &&
               get(library, "dwarf_lineendsequence", &lineendsequence);
  }

 private:
  template <typename Function>
  static bool get(void* library, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library, name));
    return *function != nullptr;
  }
};

}  // namespace

class SourceLines::Reader {
 public:
  Reader() {
    // It would ask servers on the network for what is not here.
    unsetenv("DEBUGINFOD_URLS");
    callbacks_.find_elf = libdw_.find_elf;
    callbacks_.find_debuginfo = libdw_.find_debuginfo;
    callbacks_.section_address = libdw_.section_address;
  }
  ~Reader() {
    for (auto& [file, object] : objects_)
      if (object.session != nullptr) libdw_.end(object.session);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  std::string find(const std::string& file, uint64_t offset) {
    if (!libdw_.is_there) return "";
    const Object& object = object_of(file);
    if (object.module == nullptr) return "";
    const Dwarf_Addr address = object.start + offset;
    const std::optional<Line> line = first_line_at(object, address);
    return text_of(line ? *line : line_of_code(object, address));
  }

 private:
  struct Line {
    const char* file = nullptr;
    int number = 0;
  };
  struct Object {
    Dwfl* session = nullptr;
    Dwfl_Module* module = nullptr;
    Dwarf_Addr start = 0;
  };

  static std::string text_of(const Line& line) {
    if (line.file == nullptr || line.number == 0) return "";
    return std::filesystem::path(line.file).filename().string() + ":" + std::to_string(line.number);
  }

  Line line_of_code(const Object& object, Dwarf_Addr address) {
    Line line;
    if (Dwfl_Line* found = libdw_.module_getsrc(object.module, address))
      line.file = libdw_.lineinfo(found, nullptr, &line.number, nullptr, nullptr, nullptr);
    return line;
  }

  /// A function begins with the construct that it was made of; what was inlined into it may begin at the same address, in later
  /// rows of the table.
  std::optional<Line> first_line_at(const Object& object, Dwarf_Addr address) {
    Dwarf_Addr bias = 0;
    Dwarf_Die* unit = libdw_.addrdie(object.module, address, &bias);
    Dwarf_Lines* rows = nullptr;
    size_t count = 0;
    if (unit == nullptr || libdw_.getsrclines(unit, &rows, &count) != 0) return std::nullopt;
    for (size_t i = 0; i < count; ++i) {
      Dwarf_Line* row = libdw_.onesrcline(rows, i);
      Dwarf_Addr at = 0;
      bool ends = false;
      if (libdw_.lineaddr(row, &at) != 0 || at != address - bias ||
          libdw_.lineendsequence(row, &ends) != 0 || ends)
        continue;
      Line line;
      line.file = libdw_.linesrc(row, nullptr, nullptr);
      if (libdw_.lineno(row, &line.number) == 0) return line;
    }
    return std::nullopt;
  }

  const Object& object_of(const std::string& file) {
    const auto known = objects_.find(file);
    if (known != objects_.end()) return known->second;
    Object object;
    object.session = libdw_.begin(&callbacks_);
    if (object.session != nullptr) {
      object.module = libdw_.report_offline(object.session, "", file.c_str(), -1);
      libdw_.report_end(object.session, nullptr, nullptr);
    }
    if (object.module != nullptr)
      libdw_.module_info(object.module, nullptr, &object.start, nullptr, nullptr, nullptr, nullptr,
                         nullptr);
    return objects_.emplace(file, object).first->second;
  }

  Libdw libdw_;
  Dwfl_Callbacks callbacks_{};
  std::map<std::string, Object> objects_;
};

#else

class SourceLines::Reader {
 public:
  std::string find(const std::string&, uint64_t) { return ""; }
};

#endif

SourceLines::SourceLines() : reader_(std::make_unique<Reader>()) {}
SourceLines::~SourceLines() = default;

std::string SourceLines::find(const std::string& file, uint64_t offset) {
  return file.empty() ? "" : reader_->find(file, offset);
}

}  // namespace bosk::tools
