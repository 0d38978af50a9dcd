// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What an observer reads of others: lines of /proc, hellos, and pages of a process that it write-protects.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "affinity/observer/account.h"
#include "affinity/observer/fault_counts.h"
#include "affinity/observer/hellos.h"
#include "affinity/observer/hint_faults.h"
#include "affinity/observer/kernel_balancing.h"
#include "affinity/observer/observed_process.h"
#include "affinity/observer/process_memory.h"
#include "affinity/observer/write_protection.h"
#include "base/observer_messages.h"
#include "observed/hand_over.h"

namespace bosk::affinity {
namespace {

constexpr uint64_t kPage = 4096;

TEST(Balancing, WhoElseMovesMemory) {
  char folder[] = "/tmp/bosk-balancing-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string root = folder;
  const auto write = [&](const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root + file).parent_path());
    std::ofstream(root + file) << text;
  };
  EXPECT_FALSE(look_at_balancing(root).is_on) << "a kernel without NUMA";
  write("/proc/sys/kernel/numa_balancing", "1\n");
  write("/proc/vmstat", "nr_free_pages 7\nnuma_hint_faults 1200\nnuma_pages_migrated 30\nx 1\n");
  write("/run/numad.pid", "4711\n");
  const KernelBalancing before = look_at_balancing(root);
  EXPECT_TRUE(before.is_on);
  EXPECT_FALSE(before.has_tiers);
  EXPECT_FALSE(before.has_numad) << "what it has left behind";
  EXPECT_EQ(before.hint_faults, 1200U);
  EXPECT_EQ(before.moved_pages, 30U);
  write("/proc/sys/kernel/numa_balancing", "2\n");
  write("/proc/vmstat", "numa_hint_faults 1250\nnuma_pages_migrated 31\n");
  write("/proc/4711/comm", "numad\n");
  const KernelBalancing after = look_at_balancing(root).since(before);
  EXPECT_FALSE(after.is_on);
  EXPECT_TRUE(after.has_tiers);
  EXPECT_TRUE(after.has_numad);
  EXPECT_EQ(after.hint_faults, 50U);
  EXPECT_EQ(after.moved_pages, 1U);
  std::filesystem::remove_all(root);
}

TEST(Balancing, AFaultOfWhatIsThereIsAHint) {
  PageTable pages({});
  SharingMatrix matrix;
  HintFaults faults(&pages);
  const uint64_t address = 77 * kPage + 123;
  EXPECT_FALSE(faults.is_one(nullptr, address, address));
  pages.note(address, 3, kNoNode, &matrix);
  EXPECT_TRUE(faults.is_one(nullptr, address + 50, address + 50));
  EXPECT_FALSE(faults.is_one(nullptr, address + kPage, address + kPage)) << "a first touch";
  pages.forget(address, address + 1);
  EXPECT_FALSE(faults.is_one(nullptr, address, address)) << "it is other memory now";
}

/// So much comes in while a look takes long, or many are paid for.
TEST(Account, SavesForAQuarterOfASecondOfAllCpus) {
  const double ms = kMillisecond;
  Account few(0.018);
  for (int i = 0; i < 100; ++i) few.pay_in(2 * 100 * ms, 2, 0);
  EXPECT_DOUBLE_EQ(few.credit(), 20 * ms);
  Account many(0.018);
  for (int i = 0; i < 100; ++i) many.pay_in(256 * 100 * ms, 256, 0);
  EXPECT_DOUBLE_EQ(many.credit(), 0.018 * 256 * 250 * ms);
  Account steps(0.018);
  for (int i = 0; i < 100; ++i) steps.pay_in(2 * 100 * ms, 2, 30 * ms);
  EXPECT_DOUBLE_EQ(steps.credit(), 60 * ms);
}

TEST(ProcessMemory, LinesOfMaps) {
  MappedArea area;
  ASSERT_TRUE(
      parse_mapping("7f0000001000-7f0000003000 rw-p 00002000 08:01 1234  /lib/x.so", &area));
  EXPECT_EQ(area.begin, 0x7f0000001000U);
  EXPECT_EQ(area.bytes(), 2 * kPage);
  EXPECT_FALSE(area.is_shared()) << "a private mapping is the process' own, whatever file is below";
  EXPECT_EQ(area.armed, MappedArea::Armed::kAsOne);
  ASSERT_TRUE(parse_mapping("1000-2000 rw-s 00003000 00:1a 77  /dev/shm/x", &area));
  EXPECT_TRUE(area.is_shared());
  EXPECT_EQ(area.offset, 0x3000U);
  EXPECT_EQ(area.device, 0x1aU);
  EXPECT_EQ(area.inode, 77U);
  EXPECT_EQ(area.armed, MappedArea::Armed::kAsOne);
  ASSERT_TRUE(parse_mapping("1000-2000 r-xp 00000000 08:01 1  /bin/x", &area));
  EXPECT_FALSE(area.may_be_armed());
  for (const char* special :
       {"[stack]", "[vvar]", "/dev/nvidia0", "/anon_hugepage (deleted)", "/dev/hugepages/x"}) {
    ASSERT_TRUE(parse_mapping(std::string("1000-2000 rw-p 00000000 00:00 0  ") + special, &area));
    EXPECT_FALSE(area.may_be_armed()) << special;
  }
  for (const char* plain : {"", "[heap]", "[anon:x]"}) {
    ASSERT_TRUE(parse_mapping(std::string("1000-2000 rw-p 00000000 00:00 0  ") + plain, &area));
    EXPECT_EQ(area.armed, MappedArea::Armed::kWithAll) << plain;
  }
  for (const char* none : {"", "x", "1000", "1000-2000", "1000-2000 rw", "2000-1000 rw-p 0 0:0 0",
                           "1000-2000 rw-p 0 00 0", "1000-2000 rw-p"})
    EXPECT_FALSE(parse_mapping(none, &area)) << none;
}

TEST(ProcessMemory, OfOurselves) {
  auto* const page = static_cast<char*>(
      mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const auto address = reinterpret_cast<uint64_t>(page);
  const MappedArea* area = nullptr;
  const std::vector<MappedArea> areas = mapped_areas(getpid());
  ASSERT_NE(area = find_area(areas, address + 2 * kPage), nullptr);
  EXPECT_LE(area->begin, address);
  EXPECT_EQ(find_area(areas, 0), nullptr);
  EXPECT_EQ(find_area(areas, UINT64_MAX), nullptr);
  EXPECT_EQ(find_area({}, address), nullptr);
  munmap(page, 3 * kPage);
  EXPECT_TRUE(mapped_areas(INT32_MAX).empty()) << "nobody has this number";
}

MappedArea mapping(uint64_t begin, uint64_t end, MappedArea::Armed armed) {
  return {begin << 20, end << 20, 0, 0, 0, armed};
}

TEST(ProcessMemory, RangesNeverEndWithinWhatMayBecomeOneMapping) {
  constexpr auto kNever = MappedArea::Armed::kNever;
  constexpr auto kAsOne = MappedArea::Armed::kAsOne;
  constexpr auto kWithAll = MappedArea::Armed::kWithAll;
  const std::vector<MappedArea> areas = {mapping(1, 2, kNever),   mapping(2, 3, kAsOne),
                                         mapping(3, 4, kWithAll), mapping(6, 7, kWithAll),
                                         mapping(10, 11, kNever), mapping(12, 13, kWithAll),
                                         mapping(14, 15, kNever)};
  EXPECT_TRUE(ranges_to_register({}, areas).empty()) << "nothing is known to last yet";
  const auto range = [](uint64_t begin, uint64_t end) { return Range{begin << 20, end << 20}; };
  EXPECT_EQ(ranges_to_register(areas, areas),
            (std::vector<Range>{range(2, 3), range(3, 10), range(11, 14)}));
  // One that came since the last look may be gone when the ranges are registered: nothing may end there.
  std::vector<MappedArea> before = areas;
  before.erase(before.begin() + 4);
  EXPECT_EQ(ranges_to_register(before, areas), (std::vector<Range>{range(2, 3)}));
  // Nor above the highest that lasts.
  before = areas;
  before.pop_back();
  std::vector<MappedArea> open = areas;
  open.pop_back();
  EXPECT_EQ(ranges_to_register(before, open), (std::vector<Range>{range(2, 3), range(3, 10)}));
}

TEST(FaultCounts, LinesOfStat) {
  const std::string after =
      " S 1 2 3 4 5 6 777 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 "
      "3 40 41";
  ThreadStat stat = {};
  for (const char* name : {"9 (x)", "9 (a b)", "9 (:) S 1) 2)"}) {
    ASSERT_TRUE(parse_thread_stat(name + after, &stat)) << name;
    EXPECT_EQ(stat.minor_faults, 777U);
    EXPECT_EQ(stat.cpu, 3U);
  }
  for (const char* none : {"", "9 (x", "9 (x)", "9 (x) S", "9 (x) S 1 2 3 4 5 6 x 8"})
    EXPECT_FALSE(parse_thread_stat(none, &stat)) << none;
}

TEST(FaultCounts, OurOwn) {
  FaultCounts counts(getpid());
  counts.find_threads([](uint32_t) { FAIL() << "nobody has ended"; });
  std::vector<FaultCounts::Faulted> faulted;
  counts.read(&faulted);
  faulted.clear();
  constexpr uint64_t kPages = 50;
  auto* const pages = static_cast<volatile char*>(
      mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  madvise(const_cast<char*>(pages), kPages * kPage, MADV_NOHUGEPAGE);
  for (uint64_t page = 0; page < kPages; ++page) pages[page * kPage] = 1;
  counts.read(&faulted);
  const auto me = std::ranges::find(faulted, static_cast<uint32_t>(syscall(SYS_gettid)),
                                    &FaultCounts::Faulted::thread);
  ASSERT_NE(me, faulted.end());
  EXPECT_GE(me->faults, kPages);
  munmap(const_cast<char*>(pages), kPages * kPage);
}

TEST(Spaces, FilesKeepTheirsAndNumbersGoAround) {
  Spaces spaces;
  bool again = false;
  const uint16_t file = spaces.of_file(1, 2, &again);
  EXPECT_EQ(spaces.of_file(1, 2, &again), file);
  EXPECT_NE(spaces.of_file(2, 2, &again), file);
  for (uint32_t i = 2; i < Spaces::kMost; ++i) {
    spaces.fresh(&again);
    ASSERT_FALSE(again);
  }
  EXPECT_EQ(spaces.fresh(&again), file);
  EXPECT_TRUE(again) << "who has it must be forgotten";
}

/// Says hello as a program does, `pause` in between.
int connect_to(const std::string& name) {
  const int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(connect(to, reinterpret_cast<sockaddr*>(&address), size), 0);
  return to;
}

TEST(Hellos, ThoseThatTakeTheirTimeAreWaitedFor) {
  Hellos hellos;
  const int slow = connect_to(hellos.name());
  EXPECT_FALSE(hellos.next()) << "it has not said anything yet";
  const int quick = connect_to(hellos.name());
  const bosk_observed_message text = {BOSK_OBSERVED_VERSION, BOSK_OBSERVED_HELLO, ENOSYS};
  ASSERT_EQ(send(quick, &text, sizeof text, 0), ssize_t{sizeof text});
  auto hello = hellos.next();
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->process, getpid());
  EXPECT_EQ(hello->error, ENOSYS);
  ASSERT_EQ(send(slow, &text, sizeof text, 0), ssize_t{sizeof text});
  EXPECT_TRUE(hellos.next());
  EXPECT_FALSE(hellos.next());
  close(slow);
  close(quick);
}

TEST(Hellos, NonsenseIsNotHeard) {
  Hellos hellos;
  const int silent = connect_to(hellos.name());
  close(silent);
  const int wrong = connect_to(hellos.name());
  ASSERT_EQ(send(wrong, "hello", 5, 0), 5);
  const int other = connect_to(hellos.name());
  const bosk_observed_message text = {BOSK_OBSERVED_VERSION + 1, BOSK_OBSERVED_HELLO, 0};
  ASSERT_EQ(send(other, &text, sizeof text, 0), ssize_t{sizeof text});
  EXPECT_FALSE(hellos.next());
  close(wrong);
  close(other);
}

TEST(Hellos, WhoWantsItsMemoryBackWaitsUntilItHasIt) {
  Hellos hellos;
  setenv(BOSK_OBSERVER_VARIABLE, hellos.name().c_str(), 1);
  std::atomic<bool> is_back{false};
  std::thread program([&] {
    base::release_from_observer();
    is_back = true;
  });
  std::optional<Hellos::Hello> hello;
  while (!hello) hello = hellos.next();
  EXPECT_EQ(hello->kind, BOSK_OBSERVED_RELEASE);
  EXPECT_EQ(hello->process, getpid());
  EXPECT_FALSE(is_back);
  hello.reset();
  program.join();
  unsetenv(BOSK_OBSERVER_VARIABLE);
  base::release_from_observer();  // nobody: does not wait
}

TEST(Hellos, WhoPlacesItsThreadsWaitsUntilItHasThem) {
  Hellos hellos;
  setenv(BOSK_OBSERVER_VARIABLE, hellos.name().c_str(), 1);
  std::thread program([] { base::release_threads_from_observer(); });
  std::optional<Hellos::Hello> hello;
  while (!hello) hello = hellos.next();
  EXPECT_EQ(hello->kind, BOSK_OBSERVED_PLACES_THREADS);
  EXPECT_TRUE(hello->waits);
  hello.reset();
  program.join();
  unsetenv(BOSK_OBSERVER_VARIABLE);
}

TEST(Hellos, WhoPlacesItsMemoryWaitsUntilNobodyElseDoes) {
  Hellos hellos;
  setenv(BOSK_OBSERVER_VARIABLE, hellos.name().c_str(), 1);
  std::atomic<bool> is_back = false;
  std::thread program([&] {
    base::release_memory_from_observer();
    is_back = true;
  });
  std::optional<Hellos::Hello> hello;
  while (!hello) hello = hellos.next();
  EXPECT_EQ(hello->kind, BOSK_OBSERVED_PLACES_MEMORY);
  EXPECT_FALSE(is_back);
  hello.reset();
  program.join();
  unsetenv(BOSK_OBSERVER_VARIABLE);
}

/// A process of ours with some pages, that it writes to when asked.
class Writer {
 public:
  static constexpr uint64_t kPages = 64;

  Writer() {
    pages_ = static_cast<volatile char*>(
        mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise(const_cast<char*>(pages_), kPages * kPage, MADV_NOHUGEPAGE);
    for (uint64_t page = 0; page < kPages; ++page) pages_[page * kPage] = 1;
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, talk_), 0);
    hellos_name_ = hellos_.name();
    child_ = fork();
    if (child_ == 0) serve();
  }
  ~Writer() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    munmap(const_cast<char*>(pages_), kPages * kPage);
    close(talk_[0]);
    close(talk_[1]);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  pid_t number() const { return child_; }
  uint64_t begin() const { return reinterpret_cast<uint64_t>(pages_); }
  FileDescriptor userfaultfd() {
    for (;;)
      if (auto hello = hellos_.next()) return std::move(hello->userfaultfd);
  }
  void write(uint8_t page) const {
    uint8_t answer;
    EXPECT_EQ(send(talk_[0], &page, 1, 0), 1);
    EXPECT_EQ(recv(talk_[0], &answer, 1, 0), 1);
  }

 private:
  [[noreturn]] void serve() {
    const int to = connect_to(hellos_name_);
    int made = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
    uffdio_api api = {};
    api.api = UFFD_API;
    api.features = kUffdWpAsync | kUffdWpUnpopulated;
    if (ioctl(made, UFFDIO_API, &api) != 0) made = -1;
    bosk_observed_message text = {BOSK_OBSERVED_VERSION, BOSK_OBSERVED_HELLO,
                                  made < 0 ? ENOSYS : 0};
    iovec into = {&text, sizeof text};
    alignas(cmsghdr) char with[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &into;
    message.msg_iovlen = 1;
    if (made >= 0) {
      message.msg_control = with;
      message.msg_controllen = sizeof with;
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &made, sizeof made);
    }
    sendmsg(to, &message, 0);
    close(made);
    for (uint8_t page; recv(talk_[1], &page, 1, 0) == 1;) {
      pages_[page * kPage] = 2;
      send(talk_[1], &page, 1, 0);
    }
    _exit(0);
  }

  volatile char* pages_;
  Hellos hellos_;
  std::string hellos_name_;
  int talk_[2];
  pid_t child_;
};

TEST(WriteProtection, PagesThatAreWrittenToAreFoundThoseAndNoOthers) {
  Writer writer;
  FileDescriptor userfaultfd = writer.userfaultfd();
  if (!userfaultfd) GTEST_SKIP() << "the kernel has no asynchronous write-protection";
  FileDescriptor pagemap(open(("/proc/" + std::to_string(writer.number()) + "/pagemap").c_str(),
                              O_RDONLY | O_CLOEXEC));
  WriteProtection::Shape shape;
  shape.pages = Writer::kPages;
  shape.idle_rounds = 10;
  shape.rounds = 100;
  WriteProtection protection(writer.number(), std::move(userfaultfd), std::move(pagemap), shape);
  WriteProtection::Look look;
  EXPECT_FALSE(protection.begin(&look)) << "no areas yet";
  MappedArea area = {};
  area.begin = writer.begin();
  area.end = writer.begin() + Writer::kPages * kPage;
  area.armed = MappedArea::Armed::kAsOne;
  EXPECT_TRUE(protection.set_areas({area}, {{area.begin, area.end}}));
  // Chunks lie at multiples of their size: the area is one or two.
  for (int i = 0; i < 1000 && look.armed < Writer::kPages; ++i) protection.begin(&look);
  ASSERT_EQ(look.armed, Writer::kPages);
  const size_t chunks = protection.chunks();
  look = {};
  protection.look(&look);
  EXPECT_TRUE(look.written.empty()) << "nobody has written to them";
  EXPECT_EQ(look.armed, Writer::kPages);
  for (const uint8_t page : {0, 3, 63}) {
    look = {};
    writer.write(page);
    protection.look(&look);
    EXPECT_EQ(look.written, std::vector<uint64_t>{writer.begin() + page * kPage});
  }
  EXPECT_LE(protection.chunks(), chunks);
  look = {};
  for (uint32_t round = 0; round < shape.idle_rounds; ++round) protection.look(&look);
  EXPECT_EQ(protection.chunks(), 0U) << "nobody writes there any more";
}

TEST(WriteProtection, AProcessThatHasEndedIsGone) {
  auto writer = std::make_unique<Writer>();
  FileDescriptor userfaultfd = writer->userfaultfd();
  if (!userfaultfd) GTEST_SKIP() << "the kernel has no asynchronous write-protection";
  const pid_t number = writer->number();
  ObservedProcess process(
      {number, std::move(userfaultfd), 0, BOSK_OBSERVED_HELLO, FileDescriptor()}, 1, {},
      Means{false, false});
  const auto space_of = [](const MappedArea&) -> uint16_t { return 2; };
  const auto ended = [](uint32_t) {};
  EXPECT_TRUE(process.look_again(space_of, ended));
  ASSERT_NE(process.protection(), nullptr);
  WriteProtection::Look look;
  process.protection()->begin(&look);
  uint64_t place = 0;
  uint16_t space = 0;
  EXPECT_TRUE(process.locate(writer->begin() + 5, &place, &space));
  EXPECT_EQ(place, writer->begin() + 5);
  EXPECT_EQ(space, 1U);
  writer.reset();
  look = {};
  process.protection()->look(&look);
  EXPECT_TRUE(look.written.empty());
  EXPECT_FALSE(process.look_again(space_of, ended));
  EXPECT_EQ(process.cpu_time_since(), 0U);
}

TEST(ObservedProcess, OneWithAUserfaultfdOfItsOwnIsLeftAlone) {
  const FileDescriptor own(
      static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)));
  if (!own) GTEST_SKIP() << "userfaultfd is not allowed here";
  EXPECT_TRUE(has_userfaultfd(getpid()));
  ObservedProcess process(
      {getpid(), FileDescriptor(dup(own.number())), 0, BOSK_OBSERVED_HELLO, FileDescriptor()}, 1,
      {}, Means{});
  EXPECT_TRUE(process.look_again([](const MappedArea&) -> uint16_t { return 2; }, [](uint32_t) {}));
  EXPECT_EQ(process.protection(), nullptr);
  EXPECT_TRUE(process.has_its_own());
}

}  // namespace
}  // namespace bosk::affinity
