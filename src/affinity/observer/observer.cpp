// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "affinity/observer/observer.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "affinity/acting/data_mover.h"
#include "affinity/observer/account.h"
#include "affinity/observer/arming.h"
#include "affinity/observer/eagerness.h"
#include "affinity/observer/fault_events.h"
#include "affinity/observer/hellos.h"
#include "affinity/observer/hint_faults.h"
#include "affinity/observer/means.h"
#include "affinity/observer/member.h"
#include "affinity/observer/observed_pages.h"
#include "affinity/observer/observed_process.h"
#include "observed/hand_over.h"

namespace bosk::affinity {
namespace {

/// Between two looks. Shorter ones would cost more than they find, longer ones find fewer threads at the same page.
constexpr double kShortestPeriod = 10 * kMillisecond;
constexpr double kLongestPeriod = 200 * kMillisecond;
/// Where threads are told by counts of faults, two that fault between two looks cannot be told apart.
constexpr double kShortestCountPeriod = 0.5 * kMillisecond;
/// Of so many looks at which nothing armed was written to, so many at most found faults.
constexpr double kOwnFaultsOf = 32;
constexpr double kFewOwnFaults = .1;
constexpr double kPauseAt = -10 * kMillisecond;
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
  void attach(const std::vector<pid_t>& processes);
  void run();
  void stop() { eventfd_write(stop_.number(), 1); }

  RecordingWriter* writer = nullptr;
  ObserverCosts costs;
  ObserverCounts counts;

 private:
  void welcome();
  void do_as_asked(const Hellos::Hello& by);
  void take_events();
  void note(uint32_t process, uint64_t address, uint32_t thread, uint16_t cpu, uint64_t time_ns,
            AccessKind kind);
  void end_thread(uint32_t thread);
  void pay_in();
  void look_around();
  void look(Member* member);
  void tell_by_counts(Member* member, const WriteProtection::Look& found);
  void arm();
  void act();
  uint64_t moves() const;
  int wait(double period);
  void spare_own_faults();
  uint16_t fresh_space();
  void count_if_without(Member* member);
  void begin(std::unique_ptr<FaultEvents> events);
  void drop(Members::iterator at);

  ObserverSettings settings_;
  Account account_;
  Arming arming_{&account_, &costs, &counts};
  Learner* learner_;
  Eagerness eagerness_{learner_};
  FileDescriptor stop_;
  Hellos hellos_;
  std::unique_ptr<FaultEvents> events_;
  bool events_are_on_ = true;
  Members members_;
  Spaces spaces_;
  double paid_at_ = 0;
  /// Ours. The program was begun by us and has the same, or is likely to share them.
  const double cpus_ = std::max(1.0, cpus_in(KernelThreads().mask(0)));
  double period_ = kShortestPeriod;
  ObservedPages observed_pages_{[this](pid_t process) -> ObservedProcess* {
    const auto member = members_.find(process);
    return member == members_.end() ? nullptr : &member->second.process;
  }};
  std::optional<DataMover> mover_;
  KernelThreads kernel_threads_;
  std::optional<ThreadMover> threads_;
  double act_again_ = 0;
  Means means_;
  KernelBalancing balancing_ = look_at_balancing();
  HintFaults hint_faults_{&learner_->pages()};
};

void Observer::State::watch(pid_t process) {
  raise_open_files();
  begin(FaultEvents::open({&process, 1}, &counts.no_events));
}

void Observer::State::attach(const std::vector<pid_t>& processes) {
  raise_open_files();
  begin(FaultEvents::open(processes, &counts.no_events));
  for (const pid_t process : processes)
    members_.emplace(process,
                     Member(ObservedProcess(process, fresh_space(), arming_.shape(), means_)));
  counts.processes = members_.size();
}

void Observer::State::begin(std::unique_ptr<FaultEvents> events) {
  if (settings_.without_events) {
    counts.no_events = "switched off";
    events.reset();
  }
  events_ = std::move(events);
  means_ = {events_ != nullptr, SoftDirty::is_there()};
  if (!events_) arming_.do_without_events();
  describe(means_, balancing_.is_on, &counts);
  if (events_) return;
  if (threads_) threads_->do_without_makers();
  period_ = kShortestCountPeriod;
}

/// Moving is what all this is for, so it comes before arming. Threads first: their pages follow. Each call that moves pages makes all CPUs give back those that
/// they hold in lists.
void Observer::State::act() {
  const double now = now_ns(CLOCK_MONOTONIC);
  if (now < act_again_) return;
  act_again_ = now + kActPeriod;
  account_.spend_own_time(&costs.observer);
  const uint64_t before = moves();
  if (threads_) threads_->act(now);
  // Events can be lost, and are off at times.
  if (threads_) threads_->look_for_unknown(now);
  if (mover_ && mover_->act(now)) arming_.spend_on_move();
  account_.spend_own_time(&costs.moves);
  if (moves() != before) eagerness_.news(now);
  account_.set_part(eagerness_.part(now));
}

/// Of threads and memory, until now.
uint64_t Observer::State::moves() const {
  return (threads_ ? threads_->counts().moved : 0) + (mover_ ? mover_->counts().moved : 0);
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
  const double running = arming_.running();
  // What came before we began to look may be more than there was time for.
  if (since > 0) arming_.set_running(running + (std::min(all / since, cpus_) - running) / 4);
  account_.set_running(arming_.running(), cpus_);
  account_.pay_in(all, arming_.running(), arming_.step(&members_));
}

void Observer::State::do_as_asked(const Hellos::Hello& by) {
  if (by.kind == BOSK_OBSERVED_PLACES_THREADS && threads_) {
    threads_->leave_process(by.process, now_ns(CLOCK_MONOTONIC));
  } else if (by.kind == BOSK_OBSERVED_WISHES && threads_ && members_.contains(by.process)) {
    threads_->place_by_wishes(by.process, by.waits);
  } else if (by.kind == BOSK_OBSERVED_PLACES_MEMORY && mover_) {
    mover_->leave_process(by.process);
  } else if (by.kind == BOSK_OBSERVED_RELEASE) {
    const auto member = members_.find(by.process);
    if (member == members_.end() || std::exchange(member->second.is_left_alone, true)) return;
    member->second.process.leave_alone();
    ++counts.with_their_own;
  }
}

void Observer::State::welcome() {
  while (auto hello = hellos_.next()) {
    if (hello->kind != BOSK_OBSERVED_HELLO) {
      do_as_asked(*hello);
      continue;
    }
    ++counts.processes;
    eagerness_.news(now_ns(CLOCK_MONOTONIC));
    const pid_t number = hello->process;
    if (mover_) mover_->process_began(number);
    if (threads_) threads_->look_at(number);
    // After execve() it is another one.
    if (const auto before = members_.find(number); before != members_.end()) drop(before);
    const auto [at, is_new] = members_.emplace(
        number, Member(ObservedProcess(std::move(*hello), fresh_space(), arming_.shape(), means_)));
    count_if_without(&at->second);
  }
}

void Observer::State::count_if_without(Member* member) {
  const int why = member->process.why_without();
  if (why == 0 || why == EAGAIN || std::exchange(member->has_said_why, true)) return;
  ++counts.processes_without_faults;
  counts.why_without = why;
}

uint16_t Observer::State::fresh_space() {
  bool is_used_again = false;
  const uint16_t space = spaces_.fresh(&is_used_again);
  if (is_used_again) learner_->forget(space, 0, kSpaceBytes - 1);
  return space;
}

void Observer::State::drop(Members::iterator at) {
  ObservedProcess& process = at->second.process;
  if (SoftDirty* marks = process.soft_dirty()) {
    marks->finish();
    ++counts.processes_with_marks;
    counts.huge_split += marks->split();
    counts.huge_joined += marks->joined();
  }
  if (process.why_without() == EAGAIN && !process.has_its_own()) ++counts.processes_asleep;
  if (WriteProtection* protection = process.protection()) {
    protection->finish();
    counts.huge_split += protection->split();
    counts.huge_joined += protection->joined();
    counts.areas_refused += protection->refused();
  }
  if (mover_) mover_->process_ended(at->first);
  if (threads_) threads_->process_ended(at->first);
  members_.erase(at);
}

void Observer::State::note(uint32_t process, uint64_t address, uint32_t thread, uint16_t cpu,
                           uint64_t time_ns, AccessKind kind) {
  const auto member = members_.find(static_cast<pid_t>(process));
  if (member == members_.end()) return;
  Access access = {time_ns, 0, thread, 0, cpu, kind};
  ObservedProcess& of = member->second.process;
  if (!of.locate(address, &access.address, &access.space)) return;
  if (of.protection() != nullptr && of.protection()->is_armed(address)) {
    access.kind = AccessKind::kWrite;
  } else if (of.soft_dirty() != nullptr) {
    const SoftDirty::Fault fault = of.soft_dirty()->fault_at(address);
    if (fault != SoftDirty::Fault::kUnknown) {
      access.kind = AccessKind::kWrite;
      arming_.spend_on_faults(1);
      ++counts.written;
    }
    if (fault == SoftDirty::Fault::kNotTold) return;
  }
  if (access.kind != AccessKind::kWrite && balancing_.is_on &&
      hint_faults_.is_one(&of, address, key_of(access)))
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
  arming_.spend_on_events(static_cast<double>(faults));
}

/// Which of these threads has written? All that have had one fault each: two that write to the page at the same time both have one. If the process has many faults of its own,
/// one thread alone.
void Observer::State::tell_by_counts(Member* member, const WriteProtection::Look& found) {
  std::vector<FaultCounts::Faulted> faulted;
  member->process.counts()->read(&faulted);
  if (found.armed != 0 && found.written.empty())
    member->own_faults += ((faulted.empty() ? 0. : 1.) - member->own_faults) / kOwnFaultsOf;
  if (found.written.empty()) return;
  const bool are_all =
      member->own_faults < kFewOwnFaults &&
      std::ranges::all_of(faulted, [](const auto& each) { return each.faults == 1; });
  if (faulted.size() != 1 && !are_all) {
    counts.nobodys += found.written.size();
    return;
  }
  const auto now = static_cast<uint64_t>(now_ns(CLOCK_MONOTONIC));
  for (const uint64_t page : found.written)
    for (const FaultCounts::Faulted& by : faulted)
      note(static_cast<uint32_t>(member->process.number()), page, by.thread, by.cpu, now,
           AccessKind::kWrite);
}

void Observer::State::look(Member* member) {
  const WriteProtection::Look found = arming_.look(member);
  if (member->process.counts() != nullptr) tell_by_counts(member, found);
}

void Observer::State::arm() {
  // Faults that nobody could be told of would be for nothing.
  if (!events_ || events_are_on_) arming_.arm(&members_);
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
    count_if_without(&member);
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
  if (!events_) return;
  // What was bought at once may be a debt for a while, and is for the faults to be seen.
  const double pause_at = kPauseAt - arming_.step(&members_);
  if (events_are_on_ ? account_.credit() > pause_at : account_.credit() < 0) return;
  events_are_on_ = !events_are_on_;
  events_->set_on(events_are_on_);
  if (!events_are_on_) ++counts.pauses;
}

void Observer::State::run() {
  account_.begin();
  arming_.measure_prices();
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
void Observer::attach(const std::vector<pid_t>& processes) { state_->attach(processes); }
void Observer::record_to(RecordingWriter* writer) { state_->writer = writer; }
void Observer::run() { state_->run(); }
void Observer::stop() { state_->stop(); }
const ObserverCosts& Observer::costs() const { return state_->costs; }
const ObserverCounts& Observer::counts() const { return state_->counts; }

}  // namespace bosk::affinity
