// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reading and writing the file of measured costs.
#include "memory/costs_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mapped_array.h"
#include "base/message.h"
#include "base/parse.h"

namespace bosk::memory {
namespace {

using base::MappedArray;
using base::TextReader;

constexpr size_t kMostBytes = size_t{64} << 20;
constexpr const char* kAccessWords[] = {"read", "write"};
constexpr const char* kLoadWords[] = {"alone", "node", "machine"};
constexpr const char* kPageWords[] = {"base", "huge"};
constexpr uint64_t kMostNumber = UINT64_C(1) << 50;

int take_choice(TextReader* text, const char* const* words, int count) {
  for (int i = 0; i < count; ++i)
    if (text->take_word(words[i])) return i;
  return -1;
}

/// Reads one line after the other; whatever does not fit the format is bad.
class CostsReader {
 public:
  CostsReader(const char* text, uint64_t fingerprint, const topology::Machine& machine,
              CostTable* table)
      : text_(text), fingerprint_(fingerprint), machine_(machine), table_(table) {}

  /// Null: good. Else what is wrong.
  const char* run() {
    uint64_t version;
    if (!text_.take_word("bosk") || !text_.take('-') || !text_.take_word("costs") ||
        !text_.take_unsigned(&version)) {
      return "it is no file of costs";
    }
    if (version != 2) return "it has another version";
    if (!text_.take_word("machine")) return "it names no machine";
    if (!take_fingerprint()) return "it is of another machine";
    for (uint64_t lines = 0;; ++lines) {
      if (text_.take_word("access")) {
        if (!access()) return "a line \"access\" is malformed";
      } else if (text_.take_word("migration")) {
        if (!migration()) return "a line \"migration\" is malformed";
      } else if (text_.take_word("threads")) {
        if (!numbers() || !source()) return "a line \"threads\" is malformed";
        table_->thread_move = {figure(first_), figure(second_)};
      } else if (text_.take_word("next-touch")) {
        uint64_t touch;
        if (!numbers() || !text_.take_unsigned(&touch) || touch == 0 || touch >= kMostNumber ||
            !source())
          return "a line \"next-touch\" is malformed";
        table_->next_touch = {figure(first_), figure(second_), figure(touch)};
      } else {
        uint64_t told;
        if (!text_.take_word("end") || !text_.take_unsigned(&told) || told != lines ||
            !text_.at_end()) {
          return "it is incomplete";
        }
        return nullptr;
      }
    }
  }

 private:
  bool take_fingerprint() {
    text_.peek();  // skips blanks
    char* end = nullptr;
    const uint64_t told = strtoull(text_.position(), &end, 16);
    const auto length = end - text_.position();
    for (ptrdiff_t i = 0; i < length; ++i)
      if (!text_.take(text_.position()[0])) return false;
    return length == 16 && told == fingerprint_;
  }
  bool numbers() {
    return text_.take_unsigned(&first_) && text_.take_unsigned(&second_) && first_ != 0 &&
           first_ < kMostNumber && second_ != 0 && second_ < kMostNumber;
  }
  bool source() {
    const char* const words[] = {cost_source_name(CostSource::kMeasured),
                                 cost_source_name(CostSource::kAlike)};
    const int which = take_choice(&text_, words, 2);
    source_ = which == 0 ? CostSource::kMeasured : CostSource::kAlike;
    return which >= 0;
  }
  bool pair() {
    uint64_t from;
    uint64_t to;
    if (!text_.take_unsigned(&from) || !text_.take_unsigned(&to) || from > UINT32_MAX ||
        to > UINT32_MAX) {
      return false;
    }
    from_ = machine_.node_of_os(static_cast<uint32_t>(from));
    to_ = machine_.node_of_os(static_cast<uint32_t>(to));
    return true;
  }
  bool ours() const { return from_ < table_->n_nodes && to_ < table_->n_nodes; }
  Figure figure(uint64_t thousandths) const {
    return {static_cast<float>(static_cast<double>(thousandths) / 1000), source_};
  }

  bool access() {
    if (!pair()) return false;
    const int way = take_choice(&text_, kAccessWords, kAccesses);
    const int load = take_choice(&text_, kLoadWords, kMemoryLoads);
    if (way < 0 || load < 0 || !numbers() || !source()) return false;
    if (ours()) {
      table_->access(from_, to_, static_cast<Access>(way), static_cast<MemoryLoad>(load)) = {
          figure(first_), figure(second_)};
    }
    return true;
  }
  bool migration() {
    if (!pair()) return false;
    const int pages = take_choice(&text_, kPageWords, kPageKinds);
    if (pages < 0 || !numbers() || !source()) return false;
    if (ours()) {
      table_->migration(from_, to_, static_cast<PageKind>(pages)) = {figure(first_),
                                                                     figure(second_)};
    }
    return true;
  }

  TextReader text_;
  uint64_t fingerprint_;
  const topology::Machine& machine_;
  CostTable* table_;
  NodeIndex from_ = kNoNode;
  NodeIndex to_ = kNoNode;
  uint64_t first_ = 0;
  uint64_t second_ = 0;
  CostSource source_ = CostSource::kUnknown;
};

class CostsWriter {
 public:
  bool run(uint64_t fingerprint, const topology::Machine& machine, const CostTable& table) {
    line("bosk-costs 2\nmachine %016lx\n", fingerprint);
    lines_ = 0;
    for (NodeIndex from = 0; from < table.n_nodes; ++from)
      for (NodeIndex to = 0; to < table.n_nodes; ++to) {
        const uint32_t os_from = machine.node_array[from].os_index;
        const uint32_t os_to = machine.node_array[to].os_index;
        for (uint32_t way = 0; way < kAccesses; ++way)
          for (uint32_t load = 0; load < kMemoryLoads; ++load) {
            const AccessCost& cost =
                table.access(from, to, static_cast<Access>(way), static_cast<MemoryLoad>(load));
            if (!measured(cost.latency_ns, cost.bytes_per_ns)) continue;
            line("access %u %u %s %s %lu %lu %s\n", os_from, os_to, kAccessWords[way],
                 kLoadWords[load], thousandths(cost.latency_ns), thousandths(cost.bytes_per_ns),
                 cost_source_name(cost.latency_ns.source));
          }
        for (uint32_t pages = 0; pages < kPageKinds; ++pages) {
          const MigrationCost& cost = table.migration(from, to, static_cast<PageKind>(pages));
          if (!measured(cost.fixed_ns, cost.per_page_ns)) continue;
          line("migration %u %u %s %lu %lu %s\n", os_from, os_to, kPageWords[pages],
               thousandths(cost.fixed_ns), thousandths(cost.per_page_ns),
               cost_source_name(cost.fixed_ns.source));
        }
      }
    const ThreadMoveCost& threads = table.thread_move;
    if (measured(threads.fixed_ns, threads.each_ns)) {
      line("threads %lu %lu %s\n", thousandths(threads.fixed_ns), thousandths(threads.each_ns),
           cost_source_name(threads.fixed_ns.source));
    }
    const NextTouchCost& touch = table.next_touch;
    if (measured(touch.mark_fixed_ns, touch.mark_page_ns) &&
        measured(touch.touch_page_ns, touch.touch_page_ns)) {
      line("next-touch %lu %lu %lu %s\n", thousandths(touch.mark_fixed_ns),
           thousandths(touch.mark_page_ns), thousandths(touch.touch_page_ns),
           cost_source_name(touch.mark_fixed_ns.source));
    }
    line("end %lu\n", lines_);
    return good_;
  }
  const MappedArray<char>& text() const { return text_; }
  ~CostsWriter() { text_.release(); }

 private:
  static bool measured(const Figure& a, const Figure& b) {
    return a.source <= CostSource::kAlike && b.source <= CostSource::kAlike;
  }
  /// At least 1: 0 would be no figure.
  static unsigned long thousandths(const Figure& figure) {
    const double value = figure.value * 1e3;
    const auto below = static_cast<unsigned long>(value);
    const unsigned long nearest = value - static_cast<double>(below) < 0.5 ? below : below + 1;
    return nearest == 0 ? 1 : nearest;
  }
  [[gnu::format(printf, 2, 3)]] void line(const char* format, ...) {
    char buffer[200];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    for (int i = 0; i < length && good_; ++i) good_ = text_.push(buffer[i]);
    ++lines_;
  }

  MappedArray<char> text_;
  uint64_t lines_ = 0;
  bool good_ = true;
};

bool write_all(int file, const char* text, size_t size) {
  while (size != 0) {
    const ssize_t written = write(file, text, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text += written;
    size -= static_cast<size_t>(written);
  }
  return fsync(file) == 0;
}

/// The folders above `path`; those that are there are fine.
void make_folders(const char* path) {
  char part[1024];
  const size_t length = strlen(path);
  if (length >= sizeof part) return;
  memcpy(part, path, length + 1);
  for (char* at = part + 1; *at != '\0'; ++at) {
    if (*at != '/') continue;
    *at = '\0';
    mkdir(part, 0777);
    *at = '/';
  }
}

}  // namespace

CostsFile read_costs(const char* path, uint64_t fingerprint, const topology::Machine& machine,
                     CostTable* table, topology::Error* error) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return CostsFile::kMissing;
    error->set(
        "costs of memory in %.300s cannot be read: %s; remove it, or measure again: "
        "bosk topo --measure",
        path, strerror(errno));
    return CostsFile::kBad;
  }
  MappedArray<char> text;
  char part[1024];
  ssize_t got;
  bool good = true;
  while ((got = read(file, part, sizeof part)) > 0 && good) {
    for (ssize_t i = 0; i < got && good; ++i)
      good = part[i] != '\0' && text.size() < kMostBytes && text.push(part[i]);
  }
  close(file);
  good = good && got == 0 && text.push('\0');
  const char* wrong = "it is no text, or too long";
  // Into a table of its own first: what is wrong may be at the end.
  CostTable* read = good ? make_cost_table(table->n_nodes) : nullptr;
  if (read != nullptr) wrong = CostsReader(text.data(), fingerprint, machine, read).run();
  text.release();
  if (read != nullptr && wrong == nullptr) {
    const size_t pairs = size_t{table->n_nodes} * table->n_nodes;
    for (size_t i = 0; i < pairs * kAccesses * kMemoryLoads; ++i)
      if (read->access_array[i].latency_ns.known()) table->access_array[i] = read->access_array[i];
    for (size_t i = 0; i < pairs * kPageKinds; ++i)
      if (read->migration_array[i].fixed_ns.known())
        table->migration_array[i] = read->migration_array[i];
    if (read->thread_move.fixed_ns.known()) table->thread_move = read->thread_move;
    if (read->next_touch.mark_fixed_ns.known()) table->next_touch = read->next_touch;
  }
  free_cost_table(read);
  if (wrong == nullptr) return CostsFile::kRead;
  error->set("costs of memory in %.300s are of no use: %s; measure again: bosk topo --measure",
             path, wrong);
  return CostsFile::kBad;
}

bool write_costs(const char* path, uint64_t fingerprint, const topology::Machine& machine,
                 const CostTable& table, topology::Error* error) {
  CostsWriter writer;
  if (!writer.run(fingerprint, machine, table)) return error->set("no memory for the costs' text");
  make_folders(path);
  char draft[1024 + 32];
  snprintf(draft, sizeof draft, "%.1023s.%d", path, static_cast<int>(getpid()));
  const int file = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  bool good = file >= 0;
  int code = errno;
  if (good) {
    good = write_all(file, writer.text().data(), writer.text().size());
    code = errno;
    close(file);
    if (good && rename(draft, path) != 0) {
      good = false;
      code = errno;
    }
    if (!good) unlink(draft);
  }
  if (good) return true;
  return error->set(
      "costs of memory cannot be kept in %.300s: %s (XDG_CACHE_HOME chooses another "
      "place)",
      path, strerror(code));
}

CostTable* load_costs(const topology::Machine& machine) {
  CostTable* table = make_cost_table(machine.n_nodes);
  if (table == nullptr) return nullptr;
  if (machine.this_system) {
    topology::Error error;
    char path[1024];  // the caller's stack may be small
    const uint64_t fingerprint = machine_fingerprint();
    if (costs_path(fingerprint, path, sizeof path, &error) &&
        read_costs(path, fingerprint, machine, table, &error) == CostsFile::kBad) {
      base::say("%s", error.text);
    }
  }
  estimate_costs(machine, table);
  return table;
}

}  // namespace bosk::memory
