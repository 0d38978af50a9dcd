// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Target regions in C++: references, members, closures, exceptions inside, tasks that carry objects.
#include "check.h"

#include <omp.h>

#include <numeric>
#include <stdexcept>
#include <vector>

namespace {

struct Base {
  virtual ~Base() = default;
  virtual int twice(int x) const { return 2 * x; }
};
struct Derived : Base {
  int factor = 3;
  int twice(int x) const override { return factor * x; }
};

class Counter {
 public:
  explicit Counter(int n) : values_(static_cast<size_t>(n)), data_(values_.data()), n_(n) {
    std::iota(values_.begin(), values_.end(), 0);
  }
  /// Members by `this`, and what a member points to.
  void add(int amount) {
#pragma omp target teams distribute parallel for map(tofrom : data_[0 : n_]) firstprivate(amount)
    for (int i = 0; i < n_; ++i) data_[i] += amount;
#pragma omp target map(tofrom : total_)
    total_ += amount;
  }
  void add_later(int amount) {
    int& total = total_;
#pragma omp target nowait depend(inout : total) map(tofrom : total)
    total += amount;
  }
  long sum() const { return std::accumulate(values_.begin(), values_.end(), 0L); }
  int total() const { return total_; }

 private:
  std::vector<int> values_;
  int* data_;
  int n_;
  int total_ = 0;
};

template <typename T>
T square_on_device(T x) {
  T result{};
#pragma omp target map(from : result) firstprivate(x)
  result = x * x;
  return result;
}

void references() {
  int number = 5;
  int& reference = number;
  std::vector<double> vector(100, 1.5);
#pragma omp target map(tofrom : reference) map(tofrom : vector)
  {
    reference += 1;
    vector.push_back(2.5);
  }
  CHECK(number == 6, "the reference's number is %d", number);
  CHECK(vector.size() == 101 && vector.back() == 2.5, "the vector has %zu", vector.size());

  // Firstprivate objects are copied.
  int copies = 0;
  struct Copied {
    int value;
    int more[20];
  } copied = {7, {}};
  copied.more[19] = 8;
#pragma omp target firstprivate(copied) map(from : copies)
  {
    copies = copied.value * 100 + copied.more[19];
    copied.value = 0;
  }
  CHECK(copies == 708 && copied.value == 7, "%d, %d", copies, copied.value);

  auto add = [&](int x) { number += x; };
#pragma omp target
  add(4);
  CHECK(number == 10, "the closure left %d", number);

  Derived derived;
  const Base* base = &derived;
  int found = 0;
#pragma omp target is_device_ptr(base) map(from : found)
  found = base->twice(5);
  CHECK(found == 15, "the virtual function says %d", found);
  CHECK(square_on_device(3) == 9 && square_on_device(1.5) == 2.25, "templates");
}

void members() {
  Counter counter(1000);
  counter.add(2);
  CHECK(counter.sum() == 499500 + 2000 && counter.total() == 2, "%ld, %d", counter.sum(),
        counter.total());
#pragma omp parallel num_threads(3)
#pragma omp single
  for (int i = 0; i < 50; ++i) counter.add_later(i);
  CHECK(counter.total() == 2 + 1225, "%d", counter.total());
}

void exceptions() {
  // An exception that is being handled outside is no business of the region's tasks.
  int caught = 0;
  try {
    throw std::runtime_error("outside");
  } catch (const std::exception& e) {
#pragma omp target map(tofrom : caught)
    {
      try {
        throw std::logic_error("inside");
      } catch (const std::logic_error& inner) {
        caught += strcmp(inner.what(), "inside") == 0;
      }
#pragma omp parallel num_threads(3) reduction(+ : caught)
      {
        try {
          throw omp_get_thread_num();
        } catch (int thread) {
          caught += thread == omp_get_thread_num();
        }
      }
    }
    caught += strcmp(e.what(), "outside") == 0;
  }
  CHECK(caught == 5, "%d caught", caught);
#pragma omp parallel num_threads(4)
  for (int i = 0; i < 20; ++i) {
#pragma omp target nowait firstprivate(i)
    {
      try {
        if (i % 2 == 0) throw i;
      } catch (int thrown) {
        CHECK(thrown == i, "caught %d of %d", thrown, i);
      }
    }
  }
}

}  // namespace

int main() {
  for (int round = 0; round < 10; ++round) {
    references();
    members();
    exceptions();
#pragma omp parallel num_threads(3)
    {
      references();
      exceptions();
    }
  }
  return passed();
}
