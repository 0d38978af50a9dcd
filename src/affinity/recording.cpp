// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/recording.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

namespace bosk::affinity {
namespace {

constexpr std::string_view kMagic = "bosk-accesses ";
constexpr uint32_t kVersion = 1;
/// A head is a few lines and 12 characters a CPU.
constexpr size_t kMostHead = size_t{1} << 20;
constexpr uint16_t kMostNodes = 4096;

// A record's `what`: a kind of access, or:
constexpr uint8_t kThreadEnded = 0x80;

/// 32 bytes, the low byte first.
struct Record {
  uint64_t time_ns;
  uint64_t address;
  uint32_t thread;
  uint16_t space;
  uint16_t cpu;
  uint8_t what;
  uint8_t zero[3];
  uint32_t check;
};
static_assert(sizeof(Record) == 32);
static_assert(std::endian::native == std::endian::little, "records are written as they are");

/// Of the other 28 bytes. A page of zeros, which file systems leave after a crash, must not have the right one.
uint32_t check_of(const Record& record) {
  std::array<uint32_t, 7> words;
  std::memcpy(words.data(), &record, sizeof words);
  uint32_t sum = 0x626f736b;
  for (const uint32_t word : words) sum = std::rotl(sum, 5) * 31 + word;
  return sum;
}

bool can_be(const Record& record) {
  return record.check == check_of(record) && record.address < kSpaceBytes &&
         (record.what < static_cast<uint8_t>(AccessKind::kLastKind) || record.what == kThreadEnded);
}

std::string one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(line, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return line;
}

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw RecordingError(path + ": " + why);
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open_to_read(const std::string& path) {
  File file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) fail(path, std::strerror(errno));
  return file;
}

/// Up to a line's end, without it. False: the file ends, or the head is too long.
bool read_line(std::FILE* file, size_t* left, std::string* line) {
  line->clear();
  for (int c; (c = std::getc(file)) != EOF;) {
    if (c == '\n') return true;
    if (*left == 0) return false;
    --*left;
    *line += static_cast<char>(c);
  }
  return false;
}

template <typename Number>
bool take_number(std::string_view* text, Number* number) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  if (error != std::errc()) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

/// "0=0 1=0 2=1": the node of each CPU.
bool parse_nodes(std::string_view text, NodeOfCpu* nodes) {
  nodes->nodes = 0;
  while (!text.empty()) {
    uint16_t cpu = 0;
    uint16_t node = 0;
    if (!take_number(&text, &cpu) || !text.starts_with('=')) return false;
    text.remove_prefix(1);
    if (!take_number(&text, &node) || cpu == kNoCpu || node >= kMostNodes) return false;
    if (nodes->of.size() <= cpu) nodes->of.resize(size_t{cpu} + 1, kNoCpu);
    nodes->of[cpu] = node;
    nodes->nodes = std::max<uint32_t>(nodes->nodes, node + 1U);
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  return nodes->nodes != 0;
}

std::string nodes_text(const NodeOfCpu& nodes) {
  std::string text;
  for (size_t cpu = 0; cpu < nodes.of.size(); ++cpu)
    if (nodes.of[cpu] != kNoCpu)
      text += (text.empty() ? "" : " ") + std::to_string(cpu) + "=" + std::to_string(nodes.of[cpu]);
  return text;
}

RecordingHead read_head(std::FILE* file, const std::string& path) {
  size_t left = kMostHead;
  std::string line;
  if (!read_line(file, &left, &line) || !line.starts_with(kMagic))
    fail(path, "not a recording of bosk run --learn --record");
  std::string_view rest = std::string_view(line).substr(kMagic.size());
  uint32_t version = 0;
  if (!take_number(&rest, &version) || version != kVersion)
    fail(path, "a recording of another version of bosk (its first line is \"" + one_line(line) +
                   "\", this one reads version " + std::to_string(kVersion) + ")");
  RecordingHead head;
  head.nodes.nodes = 0;
  for (;;) {
    if (!read_line(file, &left, &line)) fail(path, "the recording ends within its head");
    if (line.empty()) break;
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) fail(path, "a damaged head: \"" + one_line(line) + "\"");
    const std::string_view key = std::string_view(line).substr(0, colon);
    const std::string value = one_line(std::string_view(line).substr(colon + 2));
    if (key == "host") head.host = value;
    if (key == "program") head.program = value;
    if (key == "date") head.date = value;
    if (key == "source") head.source = value;
    if (key == "blind") head.blind = value;
    if (key == "cpus" && !parse_nodes(value, &head.nodes))
      fail(path, "a damaged head: \"" + one_line(line) + "\"");
  }
  if (head.nodes.nodes == 0) fail(path, "a damaged head: no line \"cpus: \"");
  return head;
}

}  // namespace

RecordingWriter::RecordingWriter(const std::string& path, const RecordingHead& head)
    : path_(path), file_(std::fopen(path.c_str(), "wbe")) {
  if (!file_) fail(path_, std::strerror(errno));
  std::string text = std::string(kMagic) + std::to_string(kVersion) + "\n";
  const auto add_line = [&](const char* key, const std::string& value) {
    if (!value.empty()) text += std::string(key) + ": " + one_line(value) + "\n";
  };
  add_line("host", head.host);
  add_line("program", head.program);
  add_line("date", head.date);
  add_line("source", head.source);
  add_line("blind", head.blind);
  add_line("cpus", nodes_text(head.nodes));
  text += "\n";
  std::fwrite(text.data(), 1, text.size(), file_.get());
}

void RecordingWriter::put(const Access& access, uint8_t what) {
  Record record = {};
  record.time_ns = access.time_ns;
  record.address = access.address;
  record.thread = access.thread;
  record.space = access.space;
  record.cpu = access.cpu;
  record.what = what;
  record.check = check_of(record);
  std::fwrite(&record, sizeof record, 1, file_.get());
  ++records_;
}

void RecordingWriter::add(const Access& access) { put(access, static_cast<uint8_t>(access.kind)); }

void RecordingWriter::thread_ended(uint32_t number, uint64_t time_ns) {
  put({time_ns, 0, number, 0, kNoCpu, AccessKind::kFault}, kThreadEnded);
}

void RecordingWriter::flush() { std::fflush(file_.get()); }

void RecordingWriter::finish() {
  errno = 0;
  const bool failed = std::fflush(file_.get()) != 0 || std::ferror(file_.get()) != 0;
  const int error = errno;
  if (failed)
    fail(path_, "the recording is not whole: " +
                    std::string(error != 0 ? std::strerror(error) : "could not be written"));
}

RecordingHead read_recording_head(const std::string& path) {
  const File file = open_to_read(path);
  return read_head(file.get(), path);
}

RecordingCounts read_recording(const std::string& path, const RecordingVisitor& visitor) {
  const File file = open_to_read(path);
  read_head(file.get(), path);
  RecordingCounts counts;
  std::vector<Record> records(4096);
  for (;;) {
    const size_t bytes = std::fread(records.data(), 1, records.size() * sizeof(Record), file.get());
    if (bytes == 0) break;
    counts.is_cut_off = bytes % sizeof(Record) != 0;
    for (size_t i = 0; i < bytes / sizeof(Record); ++i) {
      const Record& record = records[i];
      if (!can_be(record)) {
        ++counts.bad;
        continue;
      }
      ++counts.good;
      if (record.what == kThreadEnded)
        visitor.thread_ended(record.thread);
      else
        visitor.access({record.time_ns, record.address, record.thread, record.space, record.cpu,
                        static_cast<AccessKind>(record.what)});
    }
  }
  if (std::ferror(file.get()) != 0) fail(path, "cannot be read to its end");
  if (counts.bad > counts.good)
    fail(path, "most of its records are damaged (" + std::to_string(counts.bad) + " of " +
                   std::to_string(counts.bad + counts.good) + ")");
  return counts;
}

}  // namespace bosk::affinity
