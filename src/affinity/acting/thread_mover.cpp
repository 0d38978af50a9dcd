// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/acting/thread_mover.h"

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "affinity/observer/account.h"

namespace bosk::affinity {
namespace {

using topology::Domain;
using topology::Kind;
using topology::Machine;

constexpr double kPeriod = 100 * kMillisecond;
/// So late can we hear of a thread that was made.
constexpr double kLateEvents = 1000 * kMillisecond;
constexpr double kLookPeriod = 200 * kMillisecond;
/// So many accesses by each thread are new to a mapping.
constexpr uint64_t kNewAccesses = 64;
/// Events of sharing for each thread that say where it belongs. With fewer nothing is forgotten: of those who read, little is seen once they are in place (who reads a page
/// while it is being moved is seen), and what was seen has to last.
constexpr uint64_t kEnoughEvents = 100;
constexpr size_t kMostWords = 128;

bool has(const CpuSet& set, uint32_t cpu) {
  return cpu / 64 < set.size() && ((set[cpu / 64] >> (cpu % 64)) & 1) != 0;
}

bool is_same(const CpuSet& a, const CpuSet& b) {
  for (size_t word = 0; word < std::max(a.size(), b.size()); ++word)
    if ((word < a.size() ? a[word] : 0) != (word < b.size() ? b[word] : 0)) return false;
  return true;
}

/// The smallest domain around the PU within which sharing is cheap: its last-level cache's, if that is within a node, else its node's.
uint32_t first_pu_around(const Machine& machine, uint32_t pu) {
  const Domain* cache = machine.domain_of_pu(pu, Kind::kL3);
  const Domain* node = machine.domain_of_pu(pu, Kind::kNode);
  if (cache == nullptr || cache->first_pu == cache->last_pu)
    return node == nullptr ? 0 : node->first_pu;
  if (node == nullptr) return cache->first_pu;
  return node->contains_pu(cache->first_pu) && node->contains_pu(cache->last_pu) ? cache->first_pu
                                                                                 : node->first_pu;
}

}  // namespace

double cpus_in(const CpuSet& set) {
  double cpus = 0;
  for (const uint64_t word : set) cpus += std::popcount(word);
  return cpus;
}

CpuSet KernelThreads::mask(uint32_t thread) {
  CpuSet cpus(kMostWords);
  const long bytes = syscall(SYS_sched_getaffinity, thread, kMostWords * 8, cpus.data());
  cpus.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes) / 8);
  return cpus;
}

int KernelThreads::set_mask(uint32_t thread, const CpuSet& cpus) {
  return syscall(SYS_sched_setaffinity, thread, cpus.size() * 8, cpus.data()) == 0 ? 0 : errno;
}

std::vector<uint32_t> KernelThreads::threads_of(pid_t process) {
  std::vector<uint32_t> threads;
  std::error_code error;
  for (auto at =
           std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task", error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    uint32_t number = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc())
      threads.push_back(number);
  }
  return threads;
}

ThreadMover::ThreadMover(ThreadSystem* system, const Machine* machine, Learner* learner,
                         CpuSet given, bool stay_with_memory)
    : system_(system),
      machine_(machine),
      learner_(learner),
      given_(std::move(given)),
      stay_with_memory_(stay_with_memory) {
  for (uint32_t pu = 0; pu < machine->n_pus; ++pu) {
    Room& room = rooms_[domain_of(pu)];
    room.cpus.resize(given_.size());
    const uint32_t cpu = machine->os_of_pu(pu);
    if (!has(given_, cpu)) continue;
    room.cpus[cpu / 64] |= uint64_t{1} << (cpu % 64);
    ++room.pus;
    ++pus_;
  }
}

bool ThreadMover::is_any_use(const Machine& machine) {
  const uint32_t first = first_pu_around(machine, 0);
  for (uint32_t pu = 0; pu < machine.n_pus; ++pu)
    if (first_pu_around(machine, pu) != first) return true;
  return false;
}

uint32_t ThreadMover::domain_of(uint32_t pu) const { return first_pu_around(*machine_, pu); }

void ThreadMover::saw(pid_t process, uint32_t thread) {
  if (threads_.try_emplace(thread, Thread{process}).second) ++processes_[process];
}

void ThreadMover::made(pid_t process, uint32_t thread, uint32_t maker, double now) {
  // Its number may have been another's.
  ended(thread);
  saw(process, thread);
  const auto at = threads_.find(maker);
  if (at == threads_.end()) return;
  // A child of a process that places its threads does so, too, and need not say it again.
  if (left_.contains(at->second.process)) left_.insert(process);
  make_room_for(thread, at->second, now);
  at->second.is_maker = true;
  if (at->second.domain == kNoPu) return;
  ++counts_.makers;
  widen(maker, &at->second, now);
}

/// What it has inherited is ours to take away, unless it has bound itself meanwhile. We hear of what a maker makes later than it does so: all that it has made while it
/// was narrowed has its mask.
void ThreadMover::make_room_for(uint32_t number, const Thread& maker, double now) {
  const uint32_t domain = maker.domain != kNoPu               ? maker.domain
                          : now - maker.widened < kLateEvents ? maker.before
                                                              : kNoPu;
  if (domain != kNoPu && is_same(system_->mask(number), rooms_[domain].cpus))
    system_->set_mask(number, given_);
}

void ThreadMover::ended(uint32_t number) {
  const auto at = threads_.find(number);
  if (at == threads_.end()) return;
  give_domain(&at->second, kNoPu);
  if (const auto of = processes_.find(at->second.process);
      of != processes_.end() && --of->second == 0)
    processes_.erase(of);
  threads_.erase(at);
}

void ThreadMover::leave_process(pid_t process, double now) {
  if (!left_.insert(process).second) return;
  ++counts_.left;
  for (auto& [number, thread] : threads_)
    if (thread.process == process) widen(number, &thread, now);
}

void ThreadMover::place_by_wishes(pid_t process, const FileDescriptor& socket) {
  std::unique_ptr<WishFile> file = WishFile::make();
  if (file && file->send(socket)) wishes_[process] = std::move(file);
}

void ThreadMover::process_ended(pid_t process) { wishes_.erase(process); }

void ThreadMover::look_at(pid_t process) {
  if (narrowed_ == 0) return;
  for (const uint32_t number : system_->threads_of(process)) {
    if (threads_.contains(number)) continue;
    const CpuSet has_now = system_->mask(number);
    const bool is_inherited = std::ranges::any_of(threads_, [&](const auto& of) {
      return of.second.domain != kNoPu && is_same(has_now, rooms_[of.second.domain].cpus);
    });
    if (is_inherited) system_->set_mask(number, given_);
    saw(process, number);
  }
}

void ThreadMover::look_for_unknown(double now) {
  if (narrowed_ == 0 || now - looked_ < kLookPeriod) return;
  looked_ = now;
  std::set<pid_t> processes;
  for (const auto& [number, thread] : threads_)
    if (thread.domain != kNoPu) processes.insert(thread.process);
  for (const pid_t process : processes) look_at(process);
}

bool ThreadMover::may_move(uint32_t number, const Thread& thread) const {
  if (!knows_makers_ || thread.is_maker || thread.is_left || left_.contains(thread.process))
    return false;
  // Who starts threads later asks how many CPUs there are.
  const auto of = processes_.find(thread.process);
  const bool is_first = number == static_cast<uint32_t>(thread.process);
  return !is_first || (of != processes_.end() && of->second == 1);
}

bool ThreadMover::narrow(uint32_t number, Thread* thread, uint32_t pu) {
  const uint32_t domain = domain_of(pu);
  thread->pu = pu;
  if (thread->domain == domain) return false;
  const CpuSet& expected = thread->domain == kNoPu ? given_ : rooms_[thread->domain].cpus;
  const CpuSet has_now = system_->mask(number);
  if (has_now.empty()) return false;  // it has ended
  if (!is_same(has_now, expected)) {
    thread->is_left = true;
    give_domain(thread, kNoPu);
    ++counts_.bound;
    return false;
  }
  if (const int error = system_->set_mask(number, rooms_[domain].cpus); error != 0) {
    if (error == ESRCH) return false;
    thread->is_left = true;
    ++counts_.refused;
    counts_.why = error;
    return false;
  }
  give_domain(thread, domain);
  ++counts_.moved;
  return true;
}

void ThreadMover::widen(uint32_t number, Thread* thread, double now) {
  if (thread->domain == kNoPu) return;
  thread->before = thread->domain;
  thread->widened = now;
  if (is_same(system_->mask(number), rooms_[thread->domain].cpus))
    system_->set_mask(number, given_);
  thread->pu = kNoPu;
  give_domain(thread, kNoPu);
}

void ThreadMover::give_domain(Thread* thread, uint32_t domain) {
  if (thread->domain != kNoPu) {
    --narrowed_;
    --rooms_[thread->domain].threads;
  }
  thread->domain = domain;
  if (domain == kNoPu) return;
  ++narrowed_;
  ++rooms_[domain].threads;
}

/// Threads that live, spread evenly over all PUs.
uint32_t ThreadMover::most_in(const Room& room) const {
  const auto threads = static_cast<uint32_t>(threads_.size());
  return room.pus * ((threads + pus_ - 1) / std::max(pus_, 1U));
}

/// Others have ended, and the kernel may not spread those that are left.
void ThreadMover::widen_where_too_many(double now) {
  for (auto& [number, thread] : threads_) {
    if (thread.domain == kNoPu) continue;
    const Room& room = rooms_[thread.domain];
    if (room.threads > most_in(room)) widen(number, &thread, now);
  }
}

/// On the node that has it, in the domain where it is, or one that has room.
void ThreadMover::keep_with_memory(const Piece& piece, uint32_t present) {
  if (piece.by != nullptr) return;
  Thread& thread = threads_.at(piece.number);
  const uint32_t home = learner_->home(piece.row);
  if (thread.domain != kNoPu || home == kNoNode) return;
  uint32_t chosen = kNoPu;
  for (const auto& [domain, room] : rooms_) {
    if (machine_->node_of_pu_array[domain] != home || room.threads >= most_in(room)) continue;
    const bool is_there = present != kNoPu && domain_of(present) == domain;
    if (chosen == kNoPu || is_there) chosen = is_there ? present : domain;
  }
  if (chosen != kNoPu && narrow(piece.number, &thread, chosen)) ++counts_.stay;
}

/// What they have told, and that they tell anew, if anything was seen meanwhile.
void ThreadMover::read_wish_files() {
  const bool is_due = learner_->accesses() - rung_at_ >= kNewAccesses;
  if (is_due) rung_at_ = learner_->accesses();
  for (const auto& [process, file] : wishes_) {
    file->read();
    if (is_due) file->ring();
  }
}

/// Those that live and may be moved.
ThreadMover::Pieces ThreadMover::find_pieces() const {
  const std::span<const SeenThread> seen = learner_->threads();
  Pieces pieces;
  pieces.of_row.assign(seen.size(), Pieces::kNone);
  std::map<std::pair<const WishFile*, uint32_t>, uint32_t> members;
  for (uint32_t row = 0; row < seen.size(); ++row) {
    const uint32_t number = seen[row].number;
    const auto at = threads_.find(number);
    if (seen[row].has_ended || at == threads_.end()) continue;
    const auto fresh = static_cast<uint32_t>(pieces.all.size());
    if (const auto by = wishes_.find(at->second.process); by != wishes_.end()) {
      WishFile* file = by->second.get();
      const uint32_t member = file->member_of(number);
      if (member == WishFile::kNobody) continue;
      const auto [piece, is_new] = members.try_emplace({file, member}, fresh);
      pieces.of_row[row] = piece->second;
      if (!is_new) continue;
      pieces.all.push_back({number, row, file, member});
      pieces.present.push_back(machine_->pu_of_os(file->cpu_of(member)));
    } else if (may_move(number, at->second)) {
      pieces.of_row[row] = fresh;
      pieces.all.push_back({number, row});
      pieces.present.push_back(at->second.pu != kNoPu ? at->second.pu
                                                      : machine_->pu_of_os(seen[row].cpu));
    }
  }
  return pieces;
}

void ThreadMover::wish(const Pieces& pieces, std::span<const uint32_t> placement) {
  for (const auto& [process, file] : wishes_) {
    std::vector<uint32_t> cpus(file->team());
    for (uint32_t member = 0; member < file->team(); ++member) cpus[member] = file->cpu_of(member);
    bool is_any = false;
    for (size_t i = 0; i < pieces.all.size(); ++i) {
      const Piece& piece = pieces.all[i];
      if (piece.by != file.get() || placement[i] == kNoPu) continue;
      is_any = true;
      cpus[piece.member] = machine_->os_of_pu(placement[i]);
      if (pieces.present[i] == kNoPu || domain_of(pieces.present[i]) != domain_of(placement[i]))
        ++counts_.wished;
    }
    if (is_any) file->wish(cpus);
  }
}

void ThreadMover::act(double now) {
  if (now < again_) return;
  widen_where_too_many(now);
  read_wish_files();
  const SharingMatrix& matrix = learner_->matrix();
  const Pieces pieces = find_pieces();
  const size_t count = pieces.all.size();
  if (count < 2 || learner_->accesses() - accesses_ < kNewAccesses * count) return;
  accesses_ = learner_->accesses();
  SharingMatrix of_those(static_cast<uint32_t>(count));
  uint64_t all_events = 0;
  // Who has shared nothing yet is not in it.
  const auto rows = std::min(static_cast<uint32_t>(pieces.of_row.size()), matrix.threads());
  for (uint32_t a = 0; a < rows; ++a) {
    const uint32_t piece = pieces.of_row[a];
    if (piece == Pieces::kNone) continue;
    for (uint32_t b = 0; b < a; ++b) {
      const uint32_t other = pieces.of_row[b];
      const uint32_t events = matrix.at(a, b);
      if (other == Pieces::kNone || other == piece || events == 0) continue;
      of_those.add(piece, other, events);
      all_events += events;
    }
  }
  const Proposal proposal = propose(of_those, *machine_, pieces.present);
  if (proposal.is_worth) {
    ++counts_.mappings;
    for (size_t i = 0; i < count; ++i)
      if (const uint32_t pu = proposal.placement[i]; pu != kNoPu && pieces.all[i].by == nullptr)
        narrow(pieces.all[i].number, &threads_.at(pieces.all[i].number), pu);
    wish(pieces, proposal.placement);
  } else if (stay_with_memory_) {
    for (size_t i = 0; i < count; ++i) keep_with_memory(pieces.all[i], pieces.present[i]);
    // Who is wished where its seat is keeps to that node.
    wish(pieces, pieces.present);
  }
  if (all_events > kEnoughEvents * count) learner_->age();
  again_ = now + kPeriod;
}

void ThreadMover::give_back(double now) {
  looked_ = 0;
  look_for_unknown(now);
  for (auto& [number, thread] : threads_) widen(number, &thread, now);
}

}  // namespace bosk::affinity
