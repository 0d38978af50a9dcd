// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// C++ objects as firstprivate, private, lastprivate, reduction, copyin and threadprivate data: every copy
// that is made is destroyed, and holds the right value.
#include "check.h"

#include <omp.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace {

std::atomic<long> alive{0};
std::atomic<long> copies{0};

struct Counted {
  std::string text;
  int value;
  Counted() : text("default"), value(-1) { ++alive; }
  explicit Counted(int v) : text("value " + std::to_string(v)), value(v) { ++alive; }
  Counted(const Counted& other) : text(other.text), value(other.value) {
    ++alive;
    ++copies;
  }
  Counted& operator=(const Counted& other) = default;
  ~Counted() {
    CHECK(value != -99, "an object was destroyed twice");
    value = -99;
    --alive;
  }
  void check(int expected) const {
    CHECK(value == expected && text == "value " + std::to_string(expected),
          "object holds %d '%s', expected %d", value, text.c_str(), expected);
  }
};

void balanced(const char* where) { CHECK(alive == 0, "%s: %ld objects left", where, alive.load()); }

void tasks(int threads) {
  std::atomic<int> done{0};
#pragma omp parallel num_threads(threads)
#pragma omp single
  for (int i = 0; i < 200; ++i) {
    Counted object(i);
    std::vector<int> numbers(i % 50, i);
    auto shared = std::make_shared<Counted>(i);
#pragma omp task firstprivate(object, numbers, shared, i) shared(done)
    {
      object.check(i);
      shared->check(i);
      CHECK(numbers.size() == size_t(i % 50) && (numbers.empty() || numbers.back() == i),
            "vector of task %d", i);
      if (i % 3 == 0) {
#pragma omp task firstprivate(object, shared)
        {
          object.check(i);
          shared->check(i);
        }
        if (i % 2) {
#pragma omp taskwait
        }
      }
      ++done;
    }
#pragma omp task firstprivate(object) if (i % 2)
    {
      object.check(i);
      ++done;
    }
  }
  CHECK(done == 400, "%d tasks", done.load());
  balanced("tasks");
}

void taskloops(int threads) {
  std::atomic<int> seen{0};
  {
    Counted object(5), last;
#pragma omp parallel num_threads(threads)
#pragma omp single
    {
#pragma omp taskloop firstprivate(object) lastprivate(last) grainsize(3)
      for (int i = 0; i < 100; ++i) {
        object.check(5);
        last = Counted(i);
        ++seen;
      }
    }
    last.check(99);
  }
  CHECK(seen == 100, "%d iterations", seen.load());
  balanced("taskloop");
}

void regions(int threads) {
  long before = copies;
  {
    Counted object(7);
#pragma omp parallel num_threads(threads) firstprivate(object)
    {
      object.check(7);
#pragma omp barrier
      object = Counted(omp_get_thread_num());
#pragma omp barrier
      object.check(omp_get_thread_num());
    }
    object.check(7);
    CHECK(copies - before >= threads, "%ld copies for %d members", copies - before, threads);
    Counted other(3), last;
#pragma omp parallel num_threads(threads) private(other)
    {
      CHECK(other.value == -1 && other.text == "default",
            "a private object was not default-constructed");
#pragma omp for firstprivate(object) lastprivate(last) schedule(dynamic, 2)
      for (int i = 0; i < 60; ++i) {
        object.check(7);
        last = Counted(i);
      }
      last.check(59);
#pragma omp barrier
      Counted mine;
#pragma omp single copyprivate(mine)
      mine = Counted(1234);
      mine.check(1234);
    }
    other.check(3);
  }
  balanced("regions");
}

struct Sum {
  long total = 0;
  std::vector<int> parts;
  Sum() { ++alive; }
  Sum(const Sum& other) : total(other.total), parts(other.parts) { ++alive; }
  Sum& operator=(const Sum&) = default;
  ~Sum() { --alive; }
  Sum& operator+=(const Sum& other) {
    total += other.total;
    parts.insert(parts.end(), other.parts.begin(), other.parts.end());
    return *this;
  }
};
#pragma omp declare reduction(+ : Sum : omp_out += omp_in)
#pragma omp declare reduction( \
        join : std::vector<int> : omp_out.insert(omp_out.end(), omp_in.begin(), omp_in.end()))

void reductions(int threads) {
  {
    Sum sum;
    std::vector<int> joined;
#pragma omp parallel num_threads(threads)
    {
#pragma omp for reduction(+ : sum) reduction(join : joined) schedule(dynamic)
      for (int i = 0; i < 300; ++i) {
        sum.total += i;
        sum.parts.push_back(i);
        joined.push_back(i);
      }
    }
    CHECK(sum.total == 44850 && sum.parts.size() == 300 && joined.size() == 300,
          "reduction: %ld, %zu parts, %zu", sum.total, sum.parts.size(), joined.size());
    std::vector<char> seen(300, 0);
    for (int part : joined) CHECK(!seen[part]++, "part %d came twice", part);
    Sum from_tasks;
#pragma omp parallel num_threads(threads)
#pragma omp single
#pragma omp taskgroup task_reduction(+ : from_tasks)
    for (int i = 0; i < 50; ++i) {
#pragma omp task in_reduction(+ : from_tasks) firstprivate(i)
      {
        from_tasks.total += i;
        from_tasks.parts.push_back(i);
      }
    }
    CHECK(from_tasks.total == 1225 && from_tasks.parts.size() == 50,
          "task reduction: %ld, %zu parts", from_tasks.total, from_tasks.parts.size());
  }
  balanced("reductions");
}

/// Iterators and ranges as loop variables, and members of classes in regions.
struct Worker {
  std::vector<double> data = std::vector<double>(1000, 1.0);
  double total = 0;
  void run(int threads) {
    double sum = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : sum) schedule(guided)
    for (auto it = data.begin(); it < data.end(); it += 2) {
      *it = 2.0;
      sum += *it;
    }
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(dynamic, 7) reduction(+ : sum)
      for (double& item : data) {
        item += 1.0;
        sum += item;
      }
    }
    total = sum;
  }
};

void members(int threads) {
  Worker worker;
  worker.run(threads);
  CHECK(worker.total == 1000.0 + 2500.0, "class member loops: %g", worker.total);
  auto closure = [&worker](int n) {
    double sum = 0;
#pragma omp parallel for num_threads(n) reduction(+ : sum)
    for (int i = 0; i < 1000; ++i) sum += worker.data[i];
    return sum;
  };
  CHECK(closure(threads) == 2500.0, "region in a closure: %g", closure(threads));
}

}  // namespace

int main() {
  omp_set_dynamic(0);
  for (int threads : {omp_get_max_threads(), 1, 2, 8})
    for (int round = 0; round < 8; ++round) {
      tasks(threads);
      taskloops(threads);
      regions(threads);
      reductions(threads);
      members(threads);
    }
  return passed();
}
