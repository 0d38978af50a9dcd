// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For the context tests: donors on demand, and the smallest scheduler that moves contexts between
// kernel threads.
#pragma once

#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/syscalls.h"
#include "context/annotations.h"
#include "context/identity.h"
#include "context/switch.h"

#if defined(BOSK_TSAN)
// Children of the tests make threads, which ThreadSanitizer otherwise forbids.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }
#endif

namespace bosk::context_test {

#if defined(BOSK_ASAN) || defined(BOSK_TSAN)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// The sanitizers' TLS, which glibc takes out of the stack, is up to 1 MiB (ThreadSanitizer, gcc 12).
inline constexpr size_t kStack = kSanitized ? 2 << 20 : 256 << 10;

/// Runs under qemu's user mode: /proc shows qemu's own threads, and some system calls are missing.
inline bool emulated() {
  FILE* file = fopen("/proc/self/comm", "r");
  char name[32] = "";
  if (file == nullptr || fgets(name, sizeof name, file) == nullptr) return false;
  fclose(file);
  return strstr(name, "qemu") != nullptr;
}

/// A context on a donor. `body` runs under the donor's identity each time somebody resumes it, until
/// it is done; `yield` within it goes back to whoever did.
class DonorContext {
 public:
  explicit DonorContext(std::function<void(DonorContext&)> body, size_t stack = kStack)
      : body_(std::move(body)) {
    request_.stack_size = stack;
    request_.entry = &enter;
    request_.argument = this;
    request_.mask = 0;
    request_.finished = [](context::DonorRequest* request, context::Identity* identity) {
      auto* self = static_cast<DonorContext*>(request->argument);
      self->identity_ = identity;
      // Notify under the lock: the waiter may destroy us as soon as it has it.
      std::lock_guard guard(self->mutex_);
      self->answered_ = true;
      self->condition_.notify_one();
    };
    if (!context::request_donor(&request_)) return;
    std::unique_lock lock(mutex_);
    condition_.wait(lock, [this] { return answered_; });
    if (identity_ == nullptr) return;
    sp_ = request_.initial_sp;
    // No context runs yet, so that nobody else uses this field.
    identity_->parked_argument = this;
  }
  DonorContext(const DonorContext&) = delete;
  DonorContext& operator=(const DonorContext&) = delete;
  ~DonorContext() {
    if (identity_ != nullptr) context::release_donor(identity_);
  }

  /// Gives the donor to the caller, who releases it.
  context::Identity* take_identity() {
    context::Identity* taken = identity_;
    identity_ = nullptr;
    return taken;
  }
  context::Identity* identity() const { return identity_; }
  int error() const { return request_.error; }
  bool done() const { return done_; }
  void* sp() const { return sp_; }

  /// Runs it on the calling kernel thread until it yields or is done.
  void resume() {
    carrier_thread_pointer_ = context::thread_pointer();
    context::annotated_switch(&carrier_sp_, sp_, identity_->thread_pointer, identity_, this);
  }
  /// Called by the body only.
  void yield() {
    context::annotated_switch(&sp_, carrier_sp_, carrier_thread_pointer_, this, identity_);
  }
  /// Lets the donor's own kernel thread run it until it yields or is done.
  void resume_on_own_thread(base::KernelSigset mask) {
    context::Identity* identity = identity_;
    std::atomic<uint32_t> back{0};
    back_ = &back;
    identity->run_sp = sp_;
    identity->run_thread_pointer = identity->thread_pointer;
    identity->run_mask = mask;
    context::release_to(identity_);
    identity->command.give(context::Identity::kRun);
    while (back.load(std::memory_order_acquire) == 0) base::futex_wait(&back, 0);
    context::acquire_from(this);
  }
  /// The counterpart of yield() for a context that runs on its own kernel thread. What wakes the
  /// other side is done by the park loop, after this stack was left.
  void yield_to_park() {
    identity_->parked_action = [](void* back) {
      auto* word = static_cast<std::atomic<uint32_t>*>(back);
      word->store(1, std::memory_order_release);
      base::futex_wake(word, 1);
    };
    identity_->parked_argument = back_;
    context::annotated_switch(&sp_, identity_->park_sp, 0, this, identity_);
  }

 private:
  static void enter(void* argument) {
    context::acquire_from(argument);
    auto* identity = static_cast<context::Identity*>(argument);
    auto* self = static_cast<DonorContext*>(identity->parked_argument);
    self->body_(*self);
    self->done_ = true;
    for (;;) self->yield();
  }

  context::DonorRequest request_;
  std::function<void(DonorContext&)> body_;
  std::mutex mutex_;
  std::condition_variable condition_;
  bool answered_ = false;
  context::Identity* identity_ = nullptr;
  void* sp_ = nullptr;
  void* carrier_sp_ = nullptr;
  uintptr_t carrier_thread_pointer_ = 0;
  std::atomic<uint32_t>* back_ = nullptr;
  bool done_ = false;
};

/// Runs all contexts to their ends on `kernel_threads` kernel threads; each goes to the back of one
/// queue whenever it yields, and so moves about.
inline void run_all(std::vector<DonorContext*> contexts, int kernel_threads) {
  std::mutex mutex;
  std::condition_variable condition;
  std::deque<DonorContext*> ready(contexts.begin(), contexts.end());
  size_t left = contexts.size();
  std::vector<std::thread> threads;
  for (int i = 0; i < kernel_threads; ++i)
    threads.emplace_back([&] {
      context::unregister_rseq();
      std::unique_lock lock(mutex);
      for (;;) {
        condition.wait(lock, [&] { return left == 0 || !ready.empty(); });
        if (left == 0) return;
        DonorContext* next = ready.front();
        ready.pop_front();
        lock.unlock();
        next->resume();
        lock.lock();
        if (next->done())
          --left;
        else
          ready.push_back(next);
        condition.notify_all();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

/// A scratch folder that goes away with the object.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/bosk-context-XXXXXX";
    if (mkdtemp(name) != nullptr) path_ = name;
  }
  ~Folder() {
    for (const std::string& file : files_) unlink(file.c_str());
    if (!path_.empty()) rmdir(path_.c_str());
  }
  std::string file(const std::string& name) {
    files_.push_back(path_ + "/" + name);
    return files_.back();
  }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

#if defined(__aarch64__) && defined(__linux__)
inline constexpr const char* kCompilerPrefix = "aarch64-linux-gnu-";
#else
inline constexpr const char* kCompilerPrefix = "";
#endif

/// Compiles `source` with `command` ("gcc -shared …"); true if that worked.
inline bool compile(Folder& folder, const std::string& command, const std::string& extension,
                    const std::string& source, const std::string& result) {
  static std::atomic<int> number{0};
  const std::string text = folder.file("source" + std::to_string(number++) + extension);
  FILE* file = fopen(text.c_str(), "w");
  if (file == nullptr) return false;
  fputs(source.c_str(), file);
  fclose(file);
  const std::string line =
      kCompilerPrefix + command + " -o '" + result + "' '" + text + "'" + " 2>'" + text + ".err'";
  folder.file("source" + std::to_string(number - 1) + extension + ".err");
  return system(line.c_str()) == 0;
}

}  // namespace bosk::context_test
