// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OpenMP beside the C++ library: thread_local objects, std::thread and std::async, iostreams, std::sort in
// tasks, initialisation of static locals, std::mutex, condition variables and call_once.
#include "check.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <iomanip>
#include <mutex>
#include <numeric>
#include <random>
#include <regex>
#include <set>
#include <shared_mutex>
#include <sstream>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

std::atomic<int> made{0}, gone{0};

struct PerThread {
  int number;
  std::vector<int> history;
  PerThread() : number(made++) {}
  ~PerThread() { gone++; }
};
thread_local PerThread per_thread;
thread_local std::string scratch;
extern PerThread separate;
#pragma omp threadprivate(separate)
PerThread separate;

/// thread_local objects with constructors: one for each member, kept from region to region at level 1.
void thread_locals(int threads) {
  std::vector<int> number(threads), other(threads);
#pragma omp parallel num_threads(threads)
  {
    int me = omp_get_thread_num();
    number[me] = per_thread.number;
    other[me] = separate.number;
    per_thread.history.clear();
    scratch = "thread " + std::to_string(me);
  }
  std::set<int> distinct(number.begin(), number.end());
  CHECK(distinct.size() == size_t(threads), "%zu thread_local objects for %d members",
        distinct.size(), threads);
  for (int round = 0; round < 10; ++round) {
#pragma omp parallel num_threads(threads)
    {
      int me = omp_get_thread_num();
      CHECK(per_thread.number == number[me] && separate.number == other[me],
            "round %d: member %d has the objects %d and %d", round, me, per_thread.number,
            separate.number);
      CHECK(per_thread.history.size() == size_t(round), "member %d remembers %zu rounds", me,
            per_thread.history.size());
      CHECK(scratch == "thread " + std::to_string(me), "member %d reads '%s'", me, scratch.c_str());
#pragma omp barrier
      per_thread.history.push_back(round);
    }
  }
  // Nested members: own objects, distinct from those of the others in their team.
  std::mutex mutex;
  std::vector<std::set<PerThread*>> addresses(threads);
#pragma omp parallel num_threads(threads)
#pragma omp parallel num_threads(4)
  {
    scratch =
        std::to_string(omp_get_ancestor_thread_num(1)) + "/" + std::to_string(omp_get_thread_num());
    std::string copy = scratch;
    {
      std::lock_guard<std::mutex> guard(mutex);
      CHECK(addresses[omp_get_ancestor_thread_num(1)].insert(&per_thread).second,
            "two nested members share a thread_local object");
    }
#pragma omp barrier
    CHECK(scratch == copy, "a nested member reads '%s', wrote '%s'", scratch.c_str(), copy.c_str());
  }
  for (auto& team : addresses)
    CHECK(team.size() == 4, "%zu objects of 4 nested members", team.size());
}

int slow_value(int n) {
  std::this_thread::yield();
  volatile int spin = 0;
  for (int i = 0; i < 20000; ++i) spin = spin + i;
  return n;
}

template <int N>
int initialised() {
  static std::atomic<int> runs{0};
  static const int value = [] {
    runs++;
    return slow_value(N);
  }();
  CHECK(value == N && runs == 1, "static local %d is %d after %d initialisations", N, value,
        runs.load());
  return value;
}

/// All members race to initialise a static local; one does, the others wait.
template <int N>
void static_locals(int threads) {
  int sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  {
#pragma omp barrier
    sum += initialised<N>();
  }
  CHECK(sum == N * threads, "static local: sum %d", sum);
}

void once_and_locks(int threads) {
  std::once_flag flag;
  int calls = 0;
  std::mutex mutex;
  std::recursive_mutex recursive;
  std::shared_mutex shared;
  std::condition_variable condition;
  long guarded = 0, written = 0;
  int turn = 0;
#pragma omp parallel num_threads(threads)
  {
    int me = omp_get_thread_num();
    std::call_once(flag, [&] {
      slow_value(1);
      calls++;
    });
    CHECK(calls == 1, "call_once ran %d times", calls);
    for (int i = 0; i < 50; ++i) {
      {
        std::lock_guard<std::recursive_mutex> a(recursive);
        std::lock_guard<std::recursive_mutex> b(recursive);
        guarded++;
      }
      if (i % 5 == 0) {
        std::unique_lock<std::shared_mutex> lock(shared);
        written++;
      } else {
        std::shared_lock<std::shared_mutex> lock(shared);
        CHECK(written >= 0, "written %ld", written);
      }
    }
    for (int i = 0; i < 5; ++i) {
      std::unique_lock<std::mutex> lock(mutex);
      condition.wait(lock, [&] { return turn % threads == me; });
      turn++;
      condition.notify_all();
    }
  }
  CHECK(guarded == 50L * threads && written == 10L * threads && turn == 5 * threads, "%ld, %ld, %d",
        guarded, written, turn);
}

template <typename It>
void task_sort(It first, It last) {
  auto size = last - first;
  if (size < 500) {
    std::sort(first, last);
    return;
  }
  It middle = first + size / 2;
#pragma omp task
  task_sort(first, middle);
#pragma omp task
  task_sort(middle, last);
#pragma omp taskwait
  std::inplace_merge(first, middle, last);
}

void sorting(int threads) {
  std::mt19937 random(threads);
  std::vector<int> numbers(60000);
  for (int& number : numbers) number = int(random());
  std::vector<std::string> words(4000);
  for (auto& word : words) word = std::to_string(random());
  long long sum = std::accumulate(numbers.begin(), numbers.end(), 0LL);
#pragma omp parallel num_threads(threads)
#pragma omp single
  {
    task_sort(numbers.begin(), numbers.end());
    task_sort(words.begin(), words.end());
  }
  CHECK(
      std::is_sorted(numbers.begin(), numbers.end()) && std::is_sorted(words.begin(), words.end()),
      "std::sort in tasks: not sorted");
  CHECK(sum == std::accumulate(numbers.begin(), numbers.end(), 0LL),
        "std::sort in tasks lost numbers");
}

void streams(int threads) {
  std::vector<std::string> result(threads);
#pragma omp parallel num_threads(threads)
  {
    int me = omp_get_thread_num();
    std::ostringstream out;
    for (int i = 0; i < 50; ++i) {
      out << std::setw(6) << std::hex << me * 100 + i << ' ' << std::dec << std::setprecision(10)
          << i / 3.0 << '\n';
      if (i % 10 == 0) {
#pragma omp barrier
      }
    }
    std::istringstream in(out.str());
    for (int i = 0; i < 50; ++i) {
      int number = -1;
      double third = -1;
      in >> std::hex >> number >> std::dec >> third;
      CHECK(in && number == me * 100 + i && third > i / 3.0 - 1e-6 && third < i / 3.0 + 1e-6,
            "stream of member %d: %d %g at %d", me, number, third, i);
    }
    std::smatch match;
    std::string line = "member-" + std::to_string(me) + ".txt";
    CHECK(std::regex_match(line, match, std::regex("member-([0-9]+)\\.txt")) &&
              match[1] == std::to_string(me),
          "regex of member %d", me);
    std::unordered_map<std::string, int> map;
    for (int i = 0; i < 100; ++i) map[std::to_string(i * me)] += i;
    result[me] = std::to_string(map.size());
  }
  for (int me = 0; me < threads; ++me)
    CHECK(result[me] == (me == 0 ? "1" : "100"), "map of member %d has %s entries", me,
          result[me].c_str());
}

/// std::threads and futures that open regions, and members that start std::threads and wait for them.
void standard_threads(int threads) {
  std::vector<std::thread> pool;
  std::atomic<long> total{0};
  for (int i = 0; i < 4; ++i)
    pool.emplace_back([&, i] {
      long sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
      {
        CHECK(omp_get_level() == 1 && omp_get_num_threads() == threads,
              "level %d, team of %d in a std::thread", omp_get_level(), omp_get_num_threads());
        sum += omp_get_thread_num() + i;
      }
      total += sum;
    });
  for (auto& thread : pool) thread.join();
  CHECK(total == 4L * threads * (threads - 1) / 2 + 6L * threads, "std::threads: %ld",
        total.load());
  long sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  {
    int me = omp_get_thread_num();
    auto future = std::async(std::launch::async, [me] {
      CHECK(omp_get_level() == 0 && omp_get_num_threads() == 1, "std::async starts at level %d",
            omp_get_level());
      return me * 2;
    });
    sum += future.get();
    std::promise<int> promise;
    std::thread setter([&] { promise.set_value(me); });
    sum += promise.get_future().get();
    setter.join();
  }
  CHECK(sum == 3L * threads * (threads - 1) / 2, "futures: %ld", sum);
}

}  // namespace

int main() {
  omp_set_dynamic(0);
  omp_set_max_active_levels(3);
  static_locals<11>(2);
  static_locals<12>(8);
  static_locals<13>(omp_get_max_threads());
  static_locals<14>(16);
  for (int threads : {omp_get_max_threads(), 1, 2, 8}) {
    thread_locals(threads);
    for (int round = 0; round < 4; ++round) {
      once_and_locks(threads);
      sorting(threads);
      streams(threads);
      standard_threads(threads);
    }
  }
  return passed();
}
