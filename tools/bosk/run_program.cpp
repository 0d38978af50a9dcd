// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Looks for programs and into ELF files.
#include "run_program.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace bosk::tools {
namespace {

#if defined(__x86_64__)
constexpr unsigned kMachine = EM_X86_64;
constexpr const char* kMachineName = "x86-64";
#elif defined(__aarch64__)
constexpr unsigned kMachine = EM_AARCH64;
constexpr const char* kMachineName = "AArch64";
#endif

/// A file that is read here and there. What is not there reads as a short count.
class File {
 public:
  explicit File(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  size_t read_at(uint64_t offset, void* buffer, size_t size) const {
    const ssize_t count = pread(descriptor_, buffer, size, static_cast<off_t>(offset));
    return count < 0 ? 0 : static_cast<size_t>(count);
  }
  template <typename T>
  bool read_at(uint64_t offset, T* value) const {
    return read_at(offset, value, sizeof *value) == sizeof *value;
  }
  std::string text_at(uint64_t offset) const {
    char text[256] = {};
    read_at(offset, text, sizeof text - 1);
    return text;
  }

 private:
  int descriptor_;
};

/// What is wrong with running this file, as execve(2) sees it: an errno value, or 0.
int obstacle(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  if (!S_ISREG(status.st_mode)) return EACCES;
  return faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

[[noreturn]] void fail(const std::string& name, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      throw ProgramError(kNotFound, fmt::format("{}: there is no such program", name));
    case EISDIR:
      throw ProgramError(kCannotRun, fmt::format("{} is a directory, not a program", name));
    case EACCES:
      throw ProgramError(kCannotRun,
                         fmt::format("{} is not executable; chmod +x it if it is a program", name));
    default:
      throw ProgramError(kCannotRun, fmt::format("{}: {}", name, std::strerror(error)));
  }
}

/// The loader ignores LD_PRELOAD where the program gets rights that its caller has not.
bool has_rights_of_its_own(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return false;
  const bool other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != getuid();
  // Set-group-ID without group execution is mandatory locking, not a right.
  const bool other_group = (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 &&
                           status.st_gid != getgid();
  const bool capabilities =
      getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
  return other_user || other_group || capabilities;
}

struct Elf {
  bool has_interpreter = false;
  std::vector<std::string> needed;
};

/// Address → place in the file.
bool file_offset(const std::vector<Elf64_Phdr>& headers, uint64_t address, uint64_t* offset) {
  for (const Elf64_Phdr& header : headers) {
    if (header.p_type != PT_LOAD || address < header.p_vaddr) continue;
    if (address - header.p_vaddr >= header.p_filesz) continue;
    *offset = address - header.p_vaddr + header.p_offset;
    return true;
  }
  return false;
}

void read_needed(const File& file, const std::vector<Elf64_Phdr>& headers,
                 const Elf64_Phdr& dynamic, Elf* elf) {
  constexpr uint64_t kMostEntries = 4096;
  uint64_t names = 0;
  std::vector<uint64_t> needed;
  const uint64_t count = dynamic.p_filesz / sizeof(Elf64_Dyn);
  for (uint64_t i = 0; i < count && i < kMostEntries; ++i) {
    Elf64_Dyn entry;
    if (!file.read_at(dynamic.p_offset + i * sizeof entry, &entry) || entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED) needed.push_back(entry.d_un.d_val);
    if (entry.d_tag == DT_STRTAB && !file_offset(headers, entry.d_un.d_ptr, &names)) return;
  }
  if (names == 0) return;
  for (const uint64_t name : needed) elf->needed.push_back(file.text_at(names + name));
}

Elf read_elf(const std::string& path, const File& file, const Elf64_Ehdr& header) {
  if (header.e_ident[EI_CLASS] != ELFCLASS64) {
    throw ProgramError(
        kCannotRun, fmt::format("{} is a 32-bit program; bosk serves {} only", path, kMachineName));
  }
  if (header.e_machine != kMachine) {
    throw ProgramError(kCannotRun, fmt::format("{} is for another processor; bosk serves {} only",
                                               path, kMachineName));
  }
  Elf elf;
  std::vector<Elf64_Phdr> headers(header.e_phnum);
  const size_t size = headers.size() * sizeof(Elf64_Phdr);
  if (header.e_phentsize != sizeof(Elf64_Phdr) ||
      file.read_at(header.e_phoff, headers.data(), size) != size) {
    throw ProgramError(kCannotRun, fmt::format("{} is a damaged ELF file", path));
  }
  for (const Elf64_Phdr& segment : headers) {
    if (segment.p_type == PT_INTERP) elf.has_interpreter = true;
    if (segment.p_type == PT_DYNAMIC) read_needed(file, headers, segment, &elf);
  }
  return elf;
}

bool begins_with(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }

/// The interpreter that a script names in its first line.
std::string interpreter_of(const std::string& first_line) {
  const size_t start = first_line.find_first_not_of(" \t", 2);
  if (start == std::string::npos || first_line[start] == '\n') return "";
  return first_line.substr(start, first_line.find_first_of(" \t\n", start) - start);
}

std::string check_file(const std::string& path, int depth) {
  if (has_rights_of_its_own(path)) {
    throw ProgramError(kCannotRun,
                       fmt::format("{} runs with rights of its own (set-user-ID, set-group-ID or "
                                   "capabilities): the loader lets no library in before it",
                                   path));
  }
  const File file(path);
  if (!file.is_open()) return "";  // executable but not readable: execve will tell
  const std::string start = file.text_at(0);
  if (begins_with(start, "#!")) {
    constexpr int kMostScripts = 4;  // Linux's own limit
    const std::string interpreter = interpreter_of(start);
    if (interpreter.empty() || depth == kMostScripts) {
      throw ProgramError(kCannotRun, fmt::format("{} is a script without an interpreter", path));
    }
    if (const int error = obstacle(interpreter)) {
      throw ProgramError(
          error == ENOENT ? kNotFound : kCannotRun,
          fmt::format("{}: its interpreter {}: {}", path, interpreter, std::strerror(error)));
    }
    return check_file(interpreter, depth + 1);
  }
  Elf64_Ehdr header;
  if (!file.read_at(0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    throw ProgramError(kCannotRun,
                       fmt::format("{} is neither a program nor a script with a #! line", path));
  }
  const Elf elf = read_elf(path, file, header);
  if (!elf.has_interpreter) {
    throw ProgramError(kCannotRun,
                       fmt::format("{} is statically linked: bosk cannot take the place of an "
                                   "OpenMP library inside of it; link it dynamically",
                                   path));
  }
  bool ours = false;
  std::string clang;
  for (const std::string& name : elf.needed) {
    if (begins_with(name, "libgomp")) ours = true;
    if (begins_with(name, "libomp") || begins_with(name, "libiomp5")) clang = name;
  }
  if (ours || clang.empty()) return "";
  return fmt::format(
      "{} uses {} (Clang's or Intel's OpenMP), which bosk does not serve yet: it runs on "
      "that",
      path, clang);
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.empty()) fail("''", ENOENT);
  if (name.find('/') != std::string::npos) {
    if (const int error = obstacle(name)) fail(name, error);
    return name;
  }
  const char* path = std::getenv("PATH");
  std::string folders = path != nullptr ? path : "/bin:/usr/bin";
  // As shells do: a file that may not be run is remembered, and one behind it is taken.
  int remembered = ENOENT;
  std::string blocked = name;
  for (size_t at = 0; at <= folders.size();) {
    size_t end = folders.find(':', at);
    if (end == std::string::npos) end = folders.size();
    const std::string folder = end == at ? "." : folders.substr(at, end - at);
    const std::string candidate = folder + "/" + name;
    const int error = obstacle(candidate);
    if (error == 0) return candidate;
    if (error != ENOENT && error != ENOTDIR && error != EISDIR && remembered == ENOENT) {
      remembered = error;
      blocked = candidate;
    }
    at = end + 1;
  }
  if (remembered != ENOENT) fail(blocked, remembered);
  throw ProgramError(
      kNotFound, fmt::format("{}: not found in PATH{}", name,
                             obstacle(name) == 0 ? fmt::format("; did you mean ./{}?", name) : ""));
}

std::string check_program(const std::string& path) { return check_file(path, 0); }

}  // namespace bosk::tools
