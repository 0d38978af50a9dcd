// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C++ face of bosk (C++17, header only): threads and bubbles that give themselves back, and synchronisation
// under the names of the standard library, so that std::lock_guard, std::unique_lock and std::shared_lock work.
//
// A code of bosk/error.h that is not an expected answer is thrown as std::system_error of bosk::error_category().
// Nothing else is in here: what functions do, cost and need is told in the headers of the C interface, which this
// one includes, and in docs/threads.md and docs/synchronization.md.
#ifndef BOSK_BOSK_HPP
#define BOSK_BOSK_HPP

#include <bosk/bosk.h>
#include <bosk/sync.h>
#include <bosk/topology.h>
#include <bosk/tree.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace bosk {

/// Codes of bosk/error.h as std::error_code.
inline const std::error_category& error_category() {
  struct Category final : std::error_category {
    const char* name() const noexcept override { return "bosk"; }
    std::string message(int code) const override { return bosk_strerror(code); }
    std::error_condition default_error_condition(int code) const noexcept override {
      switch (code) {
        case BOSK_EINVAL:
          return std::errc::invalid_argument;
        case BOSK_ENOMEM:
          return std::errc::not_enough_memory;
        case BOSK_EBUSY:
          return std::errc::device_or_resource_busy;
        case BOSK_EDEADLK:
          return std::errc::resource_deadlock_would_occur;
        case BOSK_EPERM:
          return std::errc::operation_not_permitted;
        case BOSK_ENOTSUP:
          return std::errc::not_supported;
        case BOSK_ETIMEDOUT:
          return std::errc::timed_out;
        case BOSK_EAGAIN:
          return std::errc::resource_unavailable_try_again;
        default:
          return {code, *this};
      }
    }
  };
  static const Category category;
  return category;
}

/// What the last function that returned a code to the calling thread said (bosk_last_error()); "": nothing.
inline std::string last_error() {
  char text[512];
  return bosk_last_error(text, sizeof text) > 0 ? text : "";
}

namespace detail {
/// Of the line of `function`, what its code does not say: "FUNCTION: what it was about".
inline std::string what_failed(int code, const char* function) {
  std::string line = last_error();
  if (line.rfind(std::string(function) + ": ", 0) != 0) return function;  // another one's
  const std::string told = ": " + std::string(bosk_strerror(code));
  if (line.size() > told.size() && line.compare(line.size() - told.size(), told.size(), told) == 0)
    line.resize(line.size() - told.size());
  return line;
}
}  // namespace detail

/// Throws if `result`, of the function named `what`, is an error; hands it on otherwise. what() of the exception names what it was about.
inline int check(int result, const char* what) {
  if (result < 0)
    throw std::system_error(result, error_category(), detail::what_failed(result, what));
  return result;
}

// ---- time: deadlines are points of std::chrono::steady_clock

/// As the C interface takes it. What is before the clock's beginning has passed.
template <class Duration>
std::uint64_t deadline(const std::chrono::time_point<std::chrono::steady_clock, Duration>& at) {
  const auto ns = std::chrono::ceil<std::chrono::nanoseconds>(at.time_since_epoch()).count();
  return ns > 0 ? static_cast<std::uint64_t>(ns) : 0;
}
template <class Rep, class Period>
std::uint64_t deadline(const std::chrono::duration<Rep, Period>& from_now) {
  const auto ns = std::chrono::ceil<std::chrono::nanoseconds>(from_now).count();
  return bosk_after(ns > 0 ? static_cast<std::uint64_t>(ns) : 0);
}

// ---- mutexes

namespace detail {

/// Neither copied nor moved: others know its address.
struct Pinned {
  constexpr Pinned() noexcept {}
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
};

/// True: got it; false: an answer that was expected.
inline bool got(int result, int expected, const char* what) {
  if (result == 0) return true;
  if (result == expected) return false;
  throw std::system_error(result, error_category(), what);
}

class MutexBase : Pinned {
 public:
  using native_handle_type = bosk_mutex_t*;
  void lock() { check(bosk_mutex_lock(&mutex_), "bosk_mutex_lock"); }
  bool try_lock() { return got(bosk_mutex_trylock(&mutex_), BOSK_EBUSY, "bosk_mutex_trylock"); }
  /// `when`: a duration from now or a point of std::chrono::steady_clock.
  template <class Time>
  bool try_lock_until(const Time& when) {
    return got(bosk_mutex_lock_until(&mutex_, deadline(when)), BOSK_ETIMEDOUT,
               "bosk_mutex_lock_until");
  }
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& time) {
    return try_lock_until(time);
  }
  void unlock() { check(bosk_mutex_unlock(&mutex_), "bosk_mutex_unlock"); }
  native_handle_type native_handle() { return &mutex_; }

 protected:
  constexpr MutexBase() noexcept {}
  bosk_mutex_t mutex_ = BOSK_MUTEX_INITIALIZER;
};

}  // namespace detail

/// As std::timed_mutex.
class mutex : public detail::MutexBase {
 public:
  constexpr mutex() noexcept {}
};

/// As std::recursive_timed_mutex.
class recursive_mutex : public detail::MutexBase {
 public:
  recursive_mutex() { check(bosk_mutex_init(&mutex_, BOSK_MUTEX_RECURSIVE), "bosk_mutex_init"); }
};

/// As std::shared_timed_mutex, but first come, first served.
class shared_mutex : detail::Pinned {
 public:
  void lock() { check(bosk_rwlock_write(&lock_), "bosk_rwlock_write"); }
  bool try_lock() {
    return detail::got(bosk_rwlock_trywrite(&lock_), BOSK_EBUSY, "bosk_rwlock_trywrite");
  }
  template <class Time>
  bool try_lock_until(const Time& when) {
    return detail::got(bosk_rwlock_write_until(&lock_, deadline(when)), BOSK_ETIMEDOUT,
                       "bosk_rwlock_write_until");
  }
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& time) {
    return try_lock_until(time);
  }
  void unlock() { check(bosk_rwlock_unlock(&lock_), "bosk_rwlock_unlock"); }
  void lock_shared() { check(bosk_rwlock_read(&lock_), "bosk_rwlock_read"); }
  bool try_lock_shared() {
    return detail::got(bosk_rwlock_tryread(&lock_), BOSK_EBUSY, "bosk_rwlock_tryread");
  }
  template <class Time>
  bool try_lock_shared_until(const Time& when) {
    return detail::got(bosk_rwlock_read_until(&lock_, deadline(when)), BOSK_ETIMEDOUT,
                       "bosk_rwlock_read_until");
  }
  template <class Rep, class Period>
  bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& time) {
    return try_lock_shared_until(time);
  }
  void unlock_shared() { unlock(); }

 private:
  bosk_rwlock_t lock_ = BOSK_RWLOCK_INITIALIZER;
};

/// As std::condition_variable, for std::unique_lock<bosk::mutex>. No wake-up without a notification.
class condition_variable : detail::Pinned {
 public:
  void notify_one() { check(bosk_cond_signal(&cond_), "bosk_cond_signal"); }
  void notify_all() { check(bosk_cond_broadcast(&cond_), "bosk_cond_broadcast"); }

  template <class Mutex>
  void wait(std::unique_lock<Mutex>& lock) {
    check(bosk_cond_wait(&cond_, lock.mutex()->native_handle()), "bosk_cond_wait");
  }
  template <class Mutex, class Predicate>
  void wait(std::unique_lock<Mutex>& lock, Predicate ready) {
    while (!ready()) wait(lock);
  }
  /// False: the time is over. `when` as in bosk::mutex.
  template <class Mutex, class Time>
  bool wait_until(std::unique_lock<Mutex>& lock, const Time& when) {
    return wait_to(lock, deadline(when));
  }
  /// What `ready()` says in the end.
  template <class Mutex, class Time, class Predicate>
  bool wait_until(std::unique_lock<Mutex>& lock, const Time& when, Predicate ready) {
    const std::uint64_t end = deadline(when);
    while (!ready())
      if (!wait_to(lock, end)) return ready();
    return true;
  }
  template <class Mutex, class Rep, class Period, class... Predicate>
  bool wait_for(std::unique_lock<Mutex>& lock, const std::chrono::duration<Rep, Period>& time,
                Predicate... ready) {
    return wait_until(lock, time, ready...);
  }

 private:
  template <class Mutex>
  bool wait_to(std::unique_lock<Mutex>& lock, std::uint64_t end) {
    return detail::got(bosk_cond_wait_until(&cond_, lock.mutex()->native_handle(), end),
                       BOSK_ETIMEDOUT, "bosk_cond_wait_until");
  }
  bosk_cond_t cond_ = BOSK_COND_INITIALIZER;
};

/// As std::barrier without a completion function.
class barrier : detail::Pinned {
 public:
  explicit barrier(std::uint32_t count) {
    check(bosk_barrier_init(&barrier_, count), "bosk_barrier_init");
  }
  /// True for one of them.
  bool arrive_and_wait() {
    return check(bosk_barrier_wait(&barrier_), "bosk_barrier_wait") == BOSK_BARRIER_SERIAL;
  }

 private:
  bosk_barrier_t barrier_;
};

/// As std::counting_semaphore.
class semaphore : detail::Pinned {
 public:
  explicit semaphore(std::uint32_t value) { check(bosk_sem_init(&sem_, value), "bosk_sem_init"); }
  void acquire() { check(bosk_sem_wait(&sem_), "bosk_sem_wait"); }
  bool try_acquire() {
    return detail::got(bosk_sem_trywait(&sem_), BOSK_EBUSY, "bosk_sem_trywait");
  }
  template <class Time>
  bool try_acquire_until(const Time& when) {
    return detail::got(bosk_sem_wait_until(&sem_, deadline(when)), BOSK_ETIMEDOUT,
                       "bosk_sem_wait_until");
  }
  void release() { check(bosk_sem_post(&sem_), "bosk_sem_post"); }

 private:
  bosk_sem_t sem_;
};

/// A value of its own for each thread, null at first; `destroy` (may be null) is called for values of threads that
/// end.
template <class T>
class thread_value : detail::Pinned {
 public:
  explicit thread_value(void (*destroy)(void*) = nullptr) {
    check(bosk_key_create(&key_, destroy), "bosk_key_create");
  }
  ~thread_value() { bosk_key_delete(key_); }
  T* get() const { return static_cast<T*>(bosk_key_get(key_)); }
  void set(T* value) { check(bosk_key_set(key_, value), "bosk_key_set"); }

 private:
  bosk_key_t key_;
};

// ---- threads and bubbles

/// A bubble, which is destroyed with this: first it is waited for if it was woken. Empty it before if it was not.
class bubble {
 public:
  bubble() { check(bosk_bubble_create(&handle_), "bosk_bubble_create"); }
  explicit bubble(bosk_relation relation) : bubble() { set_relation(relation); }
  bubble(bubble&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        woken_(std::exchange(other.woken_, false)) {}
  bubble& operator=(bubble&& other) noexcept {
    bubble old(std::move(*this));
    handle_ = std::exchange(other.handle_, nullptr);
    woken_ = std::exchange(other.woken_, false);
    return *this;
  }
  ~bubble() {
    if (handle_ == nullptr) return;
    if (woken_) bosk_bubble_join(handle_);
    bosk_bubble_destroy(handle_);
  }

  void insert(bosk_thread_t thread) {
    check(bosk_bubble_insert_thread(handle_, thread), "bosk_bubble_insert_thread");
  }
  void insert(const bubble& inner) {
    check(bosk_bubble_insert_bubble(handle_, inner.handle_), "bosk_bubble_insert_bubble");
  }
  /// `level`: null, the machine.
  void wake(const char* level = nullptr) {
    check(bosk_bubble_wake(handle_, level), "bosk_bubble_wake");
    woken_ = true;
  }
  void join() { check(bosk_bubble_join(handle_), "bosk_bubble_join"); }
  void set_priority(std::int32_t priority) {
    check(bosk_bubble_set_priority(handle_, priority), "bosk_bubble_set_priority");
  }
  void set_load(std::uint32_t load) {
    check(bosk_bubble_set_load(handle_, load), "bosk_bubble_set_load");
  }
  void set_relation(bosk_relation relation) {
    check(bosk_bubble_set_relation(handle_, relation), "bosk_bubble_set_relation");
  }
  void set_burst_level(const char* level) {
    check(bosk_bubble_set_burst_level(handle_, level), "bosk_bubble_set_burst_level");
  }
  void set_affinity(const char* level) {
    check(bosk_bubble_set_affinity(handle_, level), "bosk_bubble_set_affinity");
  }
  void set_policy(const char* policy) {
    check(bosk_bubble_set_policy(handle_, policy), "bosk_bubble_set_policy");
  }
  void set_slice(std::chrono::nanoseconds slice) {
    check(bosk_bubble_set_slice(handle_, static_cast<std::uint64_t>(slice.count())),
          "bosk_bubble_set_slice");
  }
  bosk_bubble_t native_handle() const { return handle_; }

 private:
  bosk_bubble_t handle_ = nullptr;
  bool woken_ = false;
};

/// What a bosk::thread is made with: the defaults, and what is changed afterwards.
struct attributes : bosk_thread_attr_t {
  attributes() { check(bosk_thread_attr_init(this), "bosk_thread_attr_init"); }
  attributes& in(const class bubble& where) {
    bosk_thread_attr_t::bubble = where.native_handle();
    return *this;
  }
  attributes& bound_by(bosk_demand what) {
    bosk_thread_attr_t::demand = what;
    return *this;
  }
};

/// A thread of bosk, joined when this is destroyed. What its function throws is thrown again by join(); the destructor
/// ends the program then, as an exception that leaves a std::thread does. In a forked child join() throws BOSK_ESTALE,
/// for the thread is not there, and the destructor does nothing.
class thread {
 public:
  thread() noexcept = default;
  template <
      class Function, class... Arguments,
      class = std::enable_if_t<!std::is_same_v<std::decay_t<Function>, thread> &&
                               !std::is_base_of_v<bosk_thread_attr_t, std::decay_t<Function>>>>
  explicit thread(Function&& function, Arguments&&... arguments)
      : thread(attributes(), std::forward<Function>(function),
               std::forward<Arguments>(arguments)...) {}
  template <class Function, class... Arguments>
  thread(const attributes& how, Function&& function, Arguments&&... arguments)
      : state_(std::make_unique<State>()) {
    state_->call = [call = std::decay_t<Function>(std::forward<Function>(function)),
                    values = std::make_tuple(std::forward<Arguments>(arguments)...)]() mutable {
      std::apply(call, std::move(values));
    };
    attributes joined = how;
    joined.detached = 0;
    check(bosk_thread_create(&handle_, &joined, &thread::run, state_.get()), "bosk_thread_create");
  }
  thread(thread&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), state_(std::move(other.state_)) {}
  thread& operator=(thread&& other) noexcept {
    leave();
    handle_ = std::exchange(other.handle_, nullptr);
    state_ = std::move(other.state_);
    return *this;
  }
  ~thread() { leave(); }

  bool joinable() const noexcept { return handle_ != nullptr; }
  void join() { take_result(bosk_thread_join(handle_, nullptr)); }
  /// Lets one that was made asleep run.
  void wake() { check(bosk_thread_wake(handle_), "bosk_thread_wake"); }
  void set_priority(std::int32_t priority) {
    check(bosk_thread_set_priority(handle_, priority), "bosk_thread_set_priority");
  }
  void set_load(std::uint32_t load) {
    check(bosk_thread_set_load(handle_, load), "bosk_thread_set_load");
  }
  bosk_thread_t native_handle() const noexcept { return handle_; }

 private:
  struct State {
    std::function<void()> call;
    std::exception_ptr thrown;
  };
  void take_result(int error) {
    check(error, "bosk_thread_join");
    handle_ = nullptr;
    const std::unique_ptr<State> ended = std::move(state_);
    if (ended->thrown) std::rethrow_exception(ended->thrown);
  }
  void leave() noexcept {
    if (!joinable()) return;
    const int error = bosk_thread_join(handle_, nullptr);
    if (error != BOSK_ESTALE) return take_result(error);
    // A thread of the process that forked this one, maybe cut off in the middle of what it did with its state.
    handle_ = nullptr;
    static_cast<void>(state_.release());
  }
  static void* run(void* argument) noexcept {
    auto* state = static_cast<State*>(argument);
    try {
      state->call();
    } catch (...) {
      state->thrown = std::current_exception();
    }
    return nullptr;
  }

  bosk_thread_t handle_ = nullptr;
  std::unique_ptr<State> state_;
};

/// Bubbles after the machine (bosk/tree.h), given back with this.
class machine_tree : detail::Pinned {
 public:
  explicit machine_tree(const char* level = "node") {
    check(bosk_tree_create(&tree_, level), "bosk_tree_create");
  }
  ~machine_tree() {
    if (woken_) bosk_tree_join(tree_);
    bosk_tree_destroy(tree_);
  }
  int leaves() const { return bosk_tree_leaves(tree_); }
  bosk_bubble_t leaf(int number) const { return bosk_tree_leaf(tree_, number); }
  void wake() {
    check(bosk_tree_wake(tree_), "bosk_tree_wake");
    woken_ = true;
  }
  void join() { check(bosk_tree_join(tree_), "bosk_tree_join"); }

 private:
  bosk_tree_t* tree_ = nullptr;
  bool woken_ = false;
};

namespace this_thread {

inline void yield() { bosk_thread_yield(); }
template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period>& time) {
  check(bosk_sleep_until(deadline(time)), "bosk_sleep_until");
}
template <class Duration>
void sleep_until(const std::chrono::time_point<std::chrono::steady_clock, Duration>& at) {
  check(bosk_sleep_until(deadline(at)), "bosk_sleep_until");
}
/// The PU that the caller is on; negative: not known.
inline int here() { return bosk_here(); }

}  // namespace this_thread
}  // namespace bosk

#endif
