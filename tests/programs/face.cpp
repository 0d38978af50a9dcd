// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bosk/bosk.hpp: the C++ face, with the standard library's locks, and codes as exceptions.
#include <atomic>
#include <bosk/bosk.hpp>
#include <numeric>
#include <shared_mutex>
#include <stdexcept>
#include <vector>

#include <sys/wait.h>

#include "check.h"

using namespace std::chrono_literals;

namespace {

template <class Body>
int code_of(Body body) {
  try {
    body();
  } catch (const std::system_error& error) {
    CHECK(error.code().category() == bosk::error_category(), "another category: %s", error.what());
    return error.code().value();
  }
  return 0;
}

void locks() {
  bosk::mutex plain;
  bosk::recursive_mutex recursive;
  bosk::shared_mutex shared;
  long count = 0, pair[2] = {0, 0};
  {
    std::vector<bosk::thread> threads;
    for (int i = 0; i < 16; i++)
      threads.emplace_back([&, i] {
        for (int j = 0; j < 100; j++) {
          {
            std::lock_guard<bosk::mutex> guard(plain);
            count++;
          }
          std::unique_lock<bosk::mutex> timed(plain, std::defer_lock);
          while (!timed.try_lock_for(10us)) {
          }
          count++;
          timed.unlock();
          std::lock_guard<bosk::recursive_mutex> once(recursive);
          std::lock_guard<bosk::recursive_mutex> twice(recursive);
          if (i % 4 == 0) {
            std::unique_lock<bosk::shared_mutex> guard(shared);
            pair[0]++, pair[1]++;
          } else {
            std::shared_lock<bosk::shared_mutex> guard(shared);
            CHECK(pair[0] == pair[1], "a reader beside a writer");
          }
        }
      });
  }
  CHECK(count == 3200 && pair[0] == 400, "%ld and %ld", count, pair[0]);
  plain.lock();
  CHECK(code_of([&] { plain.lock(); }) == BOSK_EDEADLK, "locked twice");
  CHECK(!plain.try_lock(), "locked twice");
  plain.unlock();
  CHECK(code_of([&] { plain.unlock(); }) == BOSK_EPERM, "unlocked twice");
  try {
    plain.unlock();
  } catch (const std::system_error& error) {
    CHECK(error.code() == std::errc::operation_not_permitted, "not portable: %s", error.what());
  }
}

void waiting() {
  bosk::mutex mutex;
  bosk::condition_variable changed;
  bosk::semaphore items(0);
  bosk::barrier both(2);
  int turn = 0, serials = 0;
  bosk::thread other([&] {
    std::unique_lock<bosk::mutex> lock(mutex);
    for (int i = 0; i < 50; i++) {
      changed.wait(lock, [&] { return turn == 1; });
      turn = 0;
      changed.notify_all();
    }
    lock.unlock();
    for (int i = 0; i < 10; i++) items.release();
    if (both.arrive_and_wait()) __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
  });
  {
    std::unique_lock<bosk::mutex> lock(mutex);
    for (int i = 0; i < 50; i++) {
      turn = 1;
      changed.notify_one();
      while (!changed.wait_for(lock, 100us, [&] { return turn == 0; })) {
      }
    }
    CHECK(!changed.wait_for(lock, 1ms), "notified by nobody");
    CHECK(!changed.wait_until(lock, std::chrono::steady_clock::now() + 1ms, [] { return false; }),
          "it became true");
  }
  for (int i = 0; i < 10; i++) {
    if (i % 2 == 0)
      items.acquire();
    else
      while (!items.try_acquire_until(50us)) {
      }
  }
  CHECK(!items.try_acquire(), "one unit too many");
  if (both.arrive_and_wait()) __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
  other.join();
  CHECK(serials == 1, "%d serial threads", serials);
  const auto from = std::chrono::steady_clock::now();
  bosk::this_thread::sleep_for(2ms);
  bosk::this_thread::sleep_until(from + 3ms);
  CHECK(std::chrono::steady_clock::now() - from >= 3ms, "slept too short");
  CHECK(code_of([] { bosk::barrier none(0); }) == BOSK_EINVAL, "a barrier of nobody");
}

void threads_and_bubbles() {
  static std::atomic<int> destroyed{0};
  bosk::thread_value<int> own([](void* value) {
    delete static_cast<int*>(value);
    destroyed++;
  });
  std::vector<int> results(12);
  {
    bosk::bubble outer(BOSK_RELATION_DATA_SHARING), inner;
    outer.insert(inner);
    std::vector<bosk::thread> threads;
    for (int i = 0; i < 12; i++) {
      bosk::attributes how;
      how.load = 1 + static_cast<unsigned>(i);
      threads.emplace_back(
          how.in(i % 2 == 0 ? outer : inner),
          [&](int number, const std::string& text) {
            own.set(new int(number));
            bosk::this_thread::yield();
            results[static_cast<size_t>(number)] = *own.get() + static_cast<int>(text.size());
          },
          i, std::string("12345"));
    }
    outer.wake();
    outer.join();
    for (bosk::thread& thread : threads) thread.join();
  }
  for (int i = 0; i < 12; i++) CHECK(results[static_cast<size_t>(i)] == i + 5, "result %d", i);
  CHECK(destroyed == 12, "%d values destroyed", destroyed.load());

  bosk::thread thrower([] { throw std::runtime_error("from a thread"); });
  bool caught = false;
  try {
    thrower.join();
  } catch (const std::runtime_error& error) {
    caught = std::string(error.what()) == "from a thread";
  }
  CHECK(caught && !thrower.joinable(), "the exception did not arrive");

  bosk::thread moved = std::move(thrower);
  CHECK(!moved.joinable() && code_of([&] { moved.join(); }) == BOSK_ESTALE, "joined nothing");
  int ran = 0;
  bosk::attributes asleep;
  asleep.asleep = 1;
  bosk::thread sleeper(asleep, [&] { ran = 1; });
  sleeper.set_priority(3);
  sleeper.set_load(7);
  sleeper.wake();
  moved = std::move(sleeper);
  moved.join();
  CHECK(ran == 1, "it was not woken");

  std::atomic<int> in_leaves{0};
  {
    bosk::machine_tree tree("core");
    std::vector<bosk::thread> threads;
    for (int i = 0; i < tree.leaves(); i++) {
      bosk::attributes how;
      how.bubble = tree.leaf(i);
      threads.emplace_back(how, [&] { in_leaves++; });
    }
    tree.wake();
    tree.join();
    CHECK(in_leaves == tree.leaves(), "%d of %d", in_leaves.load(), tree.leaves());
  }
  CHECK(code_of([] { bosk::machine_tree tree("wurst"); }) == BOSK_ENOENT, "a level wurst");
}

/// Exceptions name what a call was about, and say what is wrong once.
void names_what_failed() {
  try {
    const bosk::machine_tree tree("sausage");
    CHECK(false, "a level that there is not");
  } catch (const std::system_error& error) {
    const std::string text = error.what();
    CHECK(text == "bosk_tree_create: level \"sausage\": there is nothing of that name", "%s",
          text.c_str());
    CHECK(bosk::last_error() == text, "%s", bosk::last_error().c_str());
  }
  // A line of another function is not told.
  bosk::mutex mutex;
  try {
    mutex.unlock();
  } catch (const std::system_error& error) {
    CHECK(std::string(error.what()).find("sausage") == std::string::npos, "%s", error.what());
  }
}

/// What a forked child inherits are objects of threads and bubbles that are not there.
void forks() {
  bosk::thread ended([] {});
  bosk::attributes how;
  how.asleep = 1;
  bosk::thread asleep(how, [] {});
  const pid_t child = fork();
  CHECK(child >= 0, "fork");
  if (child == 0) {
    CHECK(code_of([&] { ended.join(); }) == BOSK_ESTALE, "the parent's thread was joined");
    CHECK(ended.joinable(), "joined, though it threw");
    {
      const bosk::thread first = std::move(ended);
      asleep = bosk::thread([] {});
    }
    asleep.join();
    _exit(7);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7,
        "the child ended with %#x", static_cast<unsigned>(status));
  asleep.wake();
}

}  // namespace

int main() {
  locks();
  waiting();
  threads_and_bubbles();
  names_what_failed();
  forks();
  return passed();
}
