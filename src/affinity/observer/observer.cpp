// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/observer.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "affinity/acting/data_mover.h"
#include "affinity/observer/account.h"
#include "affinity/observer/fault_events.h"
#include "affinity/observer/fault_price.h"
#include "affinity/observer/hellos.h"
#include "affinity/observer/hint_faults.h"
#include "affinity/observer/observed_pages.h"
#include "affinity/observer/observed_process.h"

namespace bosk::affinity {
namespace {

/// Between two looks. Shorter ones would cost more than they find, longer ones find fewer threads at the same page.
constexpr double kShortestPeriod = 10 * kMillisecond;
constexpr double kLongestPeriod = 200 * kMillisecond;
/// Where threads are told by counts of faults, two that fault between two looks cannot be told apart.
constexpr double kShortestCountPeriod = 0.5 * kMillisecond;
constexpr double kPauseAt = -10 * kMillisecond;
constexpr uint32_t kFewestPages = 16;
constexpr double kActPeriod = 50 * kMillisecond;
/// Processes that live shorter are not worth a look at what they have mapped.
constexpr double kShortLife = 20 * kMillisecond;
constexpr double kLookAgain = 250 * kMillisecond;
constexpr double kSoon = 20 * kMillisecond;
constexpr double kLookSoon = 20 * kMillisecond;  // what is mapped has changed
/// Looking again at what is mapped takes no more than one part in this of what may be spent.
constexpr double kLookAgainShare = 5;

}  // namespace

class Observer::State {
 public:
  State(const ObserverSettings& settings, Learner* learner)
      : settings_(settings),
        account_(settings.overhead),
        price_(measure_fault_price()),
        learner_(learner),
        stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!stop_) throw std::system_error(errno, std::system_category(), "eventfd");
    if (settings.place_threads_on != nullptr)
      threads_.emplace(&kernel_threads_, settings.place_threads_on, learner, settings.cpus,
                       !settings.move_pages_to.empty());
    if (!settings.move_pages_to.empty())
      mover_.emplace(&observed_pages_, &learner->pages(), settings.move_pages_to);
  }

  const std::string& name() const { return hellos_.name(); }
  void watch(pid_t process);
  void run();
  void stop() { eventfd_write(stop_.number(), 1); }

  RecordingWriter* writer = nullptr;
  ObserverCosts costs;
  ObserverCounts counts;

 private:
  struct Member {
    explicit Member(ObservedProcess made) : process(std::move(made)) {}
    ObservedProcess process;
    double life_ns = 0;
    double looked_at = 0;
    bool must_look = true;
    bool is_left_alone = false;
    bool was_looked_at = false;
  };

  void welcome();
  void take_events();
  void note(uint32_t process, uint64_t address, uint32_t thread, uint16_t cpu, uint64_t time_ns,
            AccessKind kind);
  void end_thread(uint32_t thread);
  void pay_in();
  void look_around();
  void look(Member* member);
  void tell_by_counts(Member* member, const WriteProtection::Look& found);
  void arm();
  bool arm_one();
  double call_price() const;
  double chunk_price() const;
  void act();
  int wait(double period);
  void spare_own_faults();
  void choose_pages();
  void drop(std::map<pid_t, Member>::iterator at);

  ObserverSettings settings_;
  Account account_;
  FaultPrice price_;
  Learner* learner_;
  FileDescriptor stop_;
  Hellos hellos_;
  std::unique_ptr<FaultEvents> events_;
  bool events_are_on_ = true;
  std::map<pid_t, Member> members_;
  Spaces spaces_;
  std::minstd_rand random_{std::random_device()()};
  WriteProtection::Shape shape_;
  double paid_at_ = 0;
  double running_ = 1;  ///< on how many CPUs the program runs at a time
  double call_ns_ = 0;  ///< what it takes to arm a chunk, whatever its size
  double period_ = kShortestPeriod;
  ObservedPages observed_pages_{[this](pid_t process) -> WriteProtection* {
    const auto member = members_.find(process);
    return member == members_.end() ? nullptr : member->second.process.protection();
  }};
  std::optional<DataMover> mover_;
  KernelThreads kernel_threads_;
  std::optional<ThreadMover> threads_;
  double act_again_ = 0;
  KernelBalancing balancing_ = look_at_balancing();
  HintFaults hint_faults_{&learner_->pages()};
};

void Observer::State::watch(pid_t process) {
  raise_open_files();
  if (settings_.without_events)
    counts.no_events = "switched off";
  else
    events_ = FaultEvents::open(process, &counts.no_events);
  if (!events_) threads_.reset();  // nobody would say which threads are new
  if (events_) {
    counts.source = "asynchronous write-protection and page-fault events";
    counts.blind = "reads of memory that was written before";
    if (balancing_.is_on) {
      counts.source += ", and the hint faults of the kernel's balancing";
      counts.blind = "reads between two hint faults";
    }
  } else {
    counts.source = "asynchronous write-protection and counts of faults by thread";
    counts.blind = "reads, first touches, and writes while several threads have faults";
    shape_.pages = 8;
    price_.event_ns = 0;
    period_ = kShortestCountPeriod;
  }
}

/// Moving is what all this is for, so it comes before arming. Threads first: their pages follow. Each call that moves pages makes all CPUs give back those that
/// they hold in lists.
void Observer::State::act() {
  const double now = now_ns(CLOCK_MONOTONIC);
  if (now < act_again_) return;
  act_again_ = now + kActPeriod;
  account_.spend_own_time(&costs.observer);
  if (threads_) threads_->act(now);
  // Events can be lost, and are off at times.
  if (threads_) threads_->look_for_unknown(now);
  if (mover_ && mover_->act(now)) account_.spend(price_.interrupt_ns * running_, &costs.moves);
  account_.spend_own_time(&costs.moves);
}

/// What the program may be charged grows with the time that it takes.
void Observer::State::pay_in() {
  double all = 0;
  for (auto& [number, member] : members_) {
    const auto time = static_cast<double>(member.process.cpu_time_since());
    member.life_ns += time;
    all += time;
  }
  costs.program += all;
  const double now = now_ns(CLOCK_MONOTONIC);
  const double since = now - std::exchange(paid_at_, now);
  if (since > 0) running_ += (all / since - running_) / 4;
  account_.pay_in(all, running_, chunk_price());
}

void Observer::State::welcome() {
  while (auto hello = hellos_.next()) {
    if (threads_ && hello->places_threads)
      threads_->leave_process(hello->process, now_ns(CLOCK_MONOTONIC));
    if (mover_ && hello->places_memory) mover_->leave_process(hello->process);
    if (hello->places_threads || hello->places_memory) continue;
    if (hello->is_release) {
      const auto member = members_.find(hello->process);
      if (member == members_.end() || std::exchange(member->second.is_left_alone, true)) continue;
      member->second.process.leave_alone();
      ++counts.with_their_own;
      continue;
    }
    ++counts.processes;
    if (mover_) mover_->process_began(hello->process);
    if (threads_) threads_->look_at(hello->process);
    if (!hello->userfaultfd) {
      ++counts.processes_without_faults;
      counts.why_without = hello->error;
    }
    bool is_used_again = false;
    const uint16_t space = spaces_.fresh(&is_used_again);
    if (is_used_again) learner_->forget(space, 0, kSpaceBytes - 1);
    const pid_t number = hello->process;
    // After execve() it is another one.
    if (const auto before = members_.find(number); before != members_.end()) drop(before);
    members_.emplace(number,
                     Member(ObservedProcess(std::move(*hello), space, shape_, events_ == nullptr)));
  }
}

void Observer::State::drop(std::map<pid_t, Member>::iterator at) {
  if (const WriteProtection* protection = at->second.process.protection()) {
    counts.huge_split += protection->split();
    counts.huge_joined += protection->joined();
    counts.areas_refused += protection->refused();
  }
  if (mover_) mover_->process_ended(at->first);
  members_.erase(at);
}

void Observer::State::note(uint32_t process, uint64_t address, uint32_t thread, uint16_t cpu,
                           uint64_t time_ns, AccessKind kind) {
  const auto member = members_.find(static_cast<pid_t>(process));
  if (member == members_.end()) return;
  Access access = {time_ns, 0, thread, 0, cpu, kind};
  ObservedProcess& of = member->second.process;
  if (!of.locate(address, &access.address, &access.space)) return;
  if (of.protection() != nullptr && of.protection()->is_armed(address))
    access.kind = AccessKind::kWrite;
  else if (balancing_.is_on && hint_faults_.is_one(of.protection(), address, key_of(access)))
    access.kind = AccessKind::kRead;
  const uint32_t node = learner_->add(access);
  if (mover_ && node != kNoNode) mover_->prefers(member->first, address, key_of(access), node);
  if (threads_) threads_->saw(member->first, thread);
  if (writer != nullptr) writer->add(access);
}

void Observer::State::end_thread(uint32_t thread) {
  learner_->thread_ended(thread);
  if (threads_) threads_->ended(thread);
  if (writer != nullptr)
    writer->thread_ended(thread, static_cast<uint64_t>(now_ns(CLOCK_MONOTONIC)));
}

void Observer::State::take_events() {
  if (!events_) return;
  const uint64_t before = events_->faults() + events_->lost();
  const double now = now_ns(CLOCK_MONOTONIC);
  events_->drain({[&](const FaultEvents::Fault& fault) {
                    note(fault.process, fault.address, fault.thread,
                         static_cast<uint16_t>(fault.cpu), fault.time_ns, AccessKind::kFault);
                  },
                  [&](uint32_t process, uint32_t thread, uint32_t maker) {
                    if (threads_) threads_->made(static_cast<pid_t>(process), thread, maker, now);
                  },
                  [&](uint32_t thread) { end_thread(thread); }});
  counts.events_lost = events_->lost();
  const uint64_t faults = events_->faults() + events_->lost() - before;
  account_.spend(price_.event_ns * static_cast<double>(faults), &costs.events);
}

/// Which of these threads has written? Said only if one alone can have.
void Observer::State::tell_by_counts(Member* member, const WriteProtection::Look& found) {
  std::vector<FaultCounts::Faulted> faulted;
  member->process.counts()->read(&faulted);
  if (found.written.empty()) return;
  if (faulted.size() != 1 || faulted[0].faults < found.written.size()) {
    counts.nobodys += found.written.size();
    return;
  }
  const auto now = static_cast<uint64_t>(now_ns(CLOCK_MONOTONIC));
  for (const uint64_t page : found.written)
    note(static_cast<uint32_t>(member->process.number()), page, faulted[0].thread, faulted[0].cpu,
         now, AccessKind::kWrite);
}

void Observer::State::look(Member* member) {
  WriteProtection* protection = member->process.protection();
  if (protection == nullptr) return;
  WriteProtection::Look found;
  if (const size_t chunks = protection->chunks(); chunks != 0) {
    const double before = now_ns(CLOCK_THREAD_CPUTIME_ID);
    protection->look(&found);
    const double took = now_ns(CLOCK_THREAD_CPUTIME_ID) - before;
    call_ns_ += (took / static_cast<double>(chunks) - call_ns_) / 8;
    account_.spend(price_.interrupt_ns * running_ * static_cast<double>(chunks), &costs.interrupts);
  }
  counts.armed += found.armed;
  counts.written += found.written.size();
  account_.spend(price_.fault_ns * static_cast<double>(found.written.size()), &costs.faults);
  if (member->process.counts() != nullptr) tell_by_counts(member, found);
  if (found.must_map_again) member->must_look = true;
}

/// Arms one chunk more, in one of the processes, those that have taken more time more often.
bool Observer::State::arm_one() {
  double all = 0;
  for (const auto& [number, member] : members_)
    if (member.process.is_mapped()) all += member.life_ns;
  double at = std::uniform_real_distribution<double>(0, std::max(all, 1.0))(random_);
  for (auto& [number, member] : members_) {
    if (!member.process.is_mapped()) continue;
    at -= member.life_ns;
    WriteProtection* protection = member.process.protection();
    if (at > 0 || protection == nullptr) continue;
    WriteProtection::Look found;
    const bool began = protection->begin(&found);
    counts.armed += found.armed;
    if (found.must_map_again) member.must_look = true;
    return began;
  }
  return false;
}

double Observer::State::call_price() const { return call_ns_ + running_ * price_.interrupt_ns; }

double Observer::State::chunk_price() const {
  return shape_.pages * (price_.fault_ns + price_.event_ns) + call_price();
}

/// So many pages that the call that arms them does not cost more than they do.
void Observer::State::choose_pages() {
  if (!events_) return;
  uint32_t pages = kFewestPages;
  while (pages < WriteProtection::kMostPages &&
         pages * (price_.fault_ns + price_.event_ns) < call_price())
    pages *= 2;
  shape_.pages = pages;
  for (auto& [number, member] : members_)
    if (member.process.protection() != nullptr) member.process.protection()->set_pages(pages);
}

void Observer::State::arm() {
  // Faults that nobody could be told of would be for nothing.
  if (events_ && !events_are_on_) return;
  choose_pages();
  size_t chunks = 0;
  for (auto& [number, member] : members_)
    if (member.process.protection() != nullptr) chunks += member.process.protection()->chunks();
  if (!events_) {
    // Two chunks that are written to in one period could not be told apart.
    if (chunks == 0) arm_one();
    return;
  }
  // What those that are armed will cost until the next look is spent already.
  double left = account_.credit() - static_cast<double>(chunks) * chunk_price();
  while (left > chunk_price() && arm_one()) left -= chunk_price();
}

/// At what is mapped, and who has ended.
void Observer::State::look_around() {
  const double now = now_ns(CLOCK_MONOTONIC);
  for (auto at = members_.begin(); at != members_.end();) {
    Member& member = at->second;
    const bool is_due = now - member.looked_at >= (member.must_look ? kLookSoon : kLookAgain);
    const bool is_worth = member.life_ns >= kShortLife;
    if (!is_due || (!is_worth && kill(at->first, 0) == 0)) {
      ++at;
      continue;
    }
    const double before = now_ns(CLOCK_THREAD_CPUTIME_ID);
    const bool is_there = member.process.look_again(
        [&](const MappedArea& area) {
          bool is_used_again = false;
          const uint16_t space = spaces_.of_file(area.device, area.inode, &is_used_again);
          if (is_used_again) learner_->forget(space, 0, kSpaceBytes - 1);
          return space;
        },
        [&](uint32_t thread) { end_thread(thread); });
    const double took = now_ns(CLOCK_THREAD_CPUTIME_ID) - before;
    if (member.process.has_its_own() && !std::exchange(member.is_left_alone, true))
      ++counts.with_their_own;
    // What to register is known when what is mapped was seen twice.
    member.must_look = !std::exchange(member.was_looked_at, true);
    member.looked_at =
        now + std::max(0.0, kLookAgainShare * took / settings_.overhead - kLookAgain);
    const auto ended = at++;
    if (!is_there) drop(ended);
  }
}

int Observer::State::wait(double period) {
  pollfd wanted[] = {{stop_.number(), POLLIN, 0},
                     {hellos_.descriptor(), POLLIN, 0},
                     {events_ ? events_->descriptor() : -1, POLLIN, 0}};
  const timespec time = {static_cast<time_t>(period / 1e9),
                         static_cast<long>(static_cast<uint64_t>(period) % 1'000'000'000)};
  ppoll(wanted, 3, &time, nullptr);
  return wanted[0].revents;
}

/// The program's own faults alone may cost more than we may: then they are not looked at until that is paid.
void Observer::State::spare_own_faults() {
  if (!events_ || (events_are_on_ ? account_.credit() > kPauseAt : account_.credit() < 0)) return;
  events_are_on_ = !events_are_on_;
  events_->set_on(events_are_on_);
  if (!events_are_on_) ++counts.pauses;
}

void Observer::State::run() {
  account_.begin();
  paid_at_ = now_ns(CLOCK_MONOTONIC);
  double next = 0;
  for (bool is_last = false; !is_last;) {
    const double left = next - now_ns(CLOCK_MONOTONIC);
    // What a narrowed thread makes is to have all CPUs soon.
    const double longest = threads_ && threads_->has_narrowed() ? kSoon : kLongestPeriod;
    is_last = wait(std::clamp(left, 0.0, longest)) != 0;
    welcome();
    take_events();
    if (!is_last && now_ns(CLOCK_MONOTONIC) < next) continue;
    pay_in();
    look_around();
    if (account_.may_spend() || is_last) {
      for (auto& [number, member] : members_) look(&member);
      take_events();
      if (!is_last) act();
      arm();
    }
    account_.spend_own_time(&costs.observer);
    spare_own_faults();
    const double shortest = events_ ? kShortestPeriod : kShortestCountPeriod;
    period_ =
        std::clamp(account_.may_spend() ? period_ / 2 : period_ * 1.5, shortest, kLongestPeriod);
    next = now_ns(CLOCK_MONOTONIC) + period_;
  }
  while (!members_.empty()) drop(members_.begin());
  costs.program = std::max(costs.program, time_of_children());
  counts.balancing = look_at_balancing().since(balancing_);
  if (mover_) counts.data = mover_->counts();
  if (threads_) {
    threads_->give_back(now_ns(CLOCK_MONOTONIC));
    counts.threads = threads_->counts();
  }
}

Observer::Observer(const ObserverSettings& settings, Learner* learner)
    : state_(std::make_unique<State>(settings, learner)) {}
Observer::~Observer() = default;
const std::string& Observer::name() const { return state_->name(); }
void Observer::watch(pid_t process) { state_->watch(process); }
void Observer::record_to(RecordingWriter* writer) { state_->writer = writer; }
void Observer::run() { state_->run(); }
void Observer::stop() { state_->stop(); }
const ObserverCosts& Observer::costs() const { return state_->costs; }
const ObserverCounts& Observer::counts() const { return state_->counts; }

}  // namespace bosk::affinity
