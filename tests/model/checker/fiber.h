// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A stack of its own for each thread of a model, switched by hand on one kernel thread.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define MODEL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MODEL_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define MODEL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MODEL_TSAN 1
#endif
#endif
#ifdef MODEL_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef MODEL_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace model {

/// Not the library's context/: the checker must not rest on what it is there to test.
class Fiber {
 public:
  using Entry = void (*)(void*);

  Fiber() {
    void* memory = mmap(nullptr, kStackSize, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    stack_ = static_cast<char*>(memory);
#ifdef MODEL_TSAN
    tsan_self_ = __tsan_create_fiber(0);
#endif
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() {
#ifdef MODEL_TSAN
    __tsan_destroy_fiber(tsan_self_);
#endif
    munmap(stack_, kStackSize);
  }

  /// Makes the next resume() call `entry(argument)`, which must end in finish().
  void prepare(Entry entry, void* argument) {
    entry_ = entry;
    argument_ = argument;
#if defined(__x86_64__)
    auto* top = reinterpret_cast<std::uintptr_t*>(stack_ + kStackSize - 64);
    top[1] = 0;  // the return address of the first frame: unwinding ends here
    top[0] = reinterpret_cast<std::uintptr_t>(&trampoline);
    fiber_sp_ = top;
#else
    getcontext(&fiber_);
    fiber_.uc_stack.ss_sp = stack_;
    fiber_.uc_stack.ss_size = kStackSize;
    fiber_.uc_link = nullptr;
    makecontext(&fiber_, &trampoline, 0);
#endif
#ifdef MODEL_ASAN
    fiber_fake_ = nullptr;
#endif
  }

  /// Called by the scheduler: runs the fiber until it suspends or finishes.
  void resume() {
    starting() = this;
#ifdef MODEL_ASAN
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, stack_, kStackSize);
#endif
#ifdef MODEL_TSAN
    tsan_home_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(tsan_self_, 0);
#endif
    to_fiber();
#ifdef MODEL_ASAN
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  }

  /// Called on the fiber: back to the scheduler.
  void suspend() {
#ifdef MODEL_ASAN
    __sanitizer_start_switch_fiber(&fiber_fake_, home_bottom_, home_size_);
#endif
    leave();
#ifdef MODEL_ASAN
    __sanitizer_finish_switch_fiber(fiber_fake_, &home_bottom_, &home_size_);
#endif
  }

  /// Called on the fiber as its last act.
  [[noreturn]] void finish() {
#ifdef MODEL_ASAN
    __sanitizer_start_switch_fiber(nullptr, home_bottom_, home_size_);
#endif
    leave();
    __builtin_unreachable();
  }

 private:
  static constexpr std::size_t kStackSize = 256 * 1024;

  static Fiber*& starting() {
    static Fiber* fiber = nullptr;
    return fiber;
  }

  static void trampoline() {
    Fiber* self = starting();
#ifdef MODEL_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &self->home_bottom_, &self->home_size_);
#endif
    self->entry_(self->argument_);
    self->finish();
  }

  void leave() {
#ifdef MODEL_TSAN
    __tsan_switch_to_fiber(tsan_home_, 0);
#endif
    to_home();
  }

#if defined(__x86_64__)
  // Every register is clobbered, so the compiler saves what it needs; rbp and rbx are pushed,
  // because some compilers refuse them as clobbers. The 128 bytes are the red zone.
  [[gnu::noinline]] static void switch_stack(void** save, void* load) {
    asm volatile(
        "lea -128(%%rsp), %%rsp\n\t"
        "pushq %%rbp\n\t"
        "pushq %%rbx\n\t"
        "lea 1f(%%rip), %%rax\n\t"
        "pushq %%rax\n\t"
        "movq %%rsp, (%0)\n\t"
        "movq %1, %%rsp\n\t"
        "popq %%rax\n\t"
        "jmp *%%rax\n\t"
        "1:\n\t"
        "popq %%rbx\n\t"
        "popq %%rbp\n\t"
        "lea 128(%%rsp), %%rsp\n\t"
        : "+D"(save), "+S"(load)
        :
        : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory",
          "cc");
  }
  void to_fiber() { switch_stack(&home_sp_, fiber_sp_); }
  void to_home() { switch_stack(&fiber_sp_, home_sp_); }
  void* fiber_sp_ = nullptr;
  void* home_sp_ = nullptr;
#else
  void to_fiber() { swapcontext(&home_, &fiber_); }
  void to_home() { swapcontext(&fiber_, &home_); }
  ucontext_t fiber_{};
  ucontext_t home_{};
#endif

  char* stack_ = nullptr;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
#ifdef MODEL_ASAN
  void* fiber_fake_ = nullptr;
  const void* home_bottom_ = nullptr;
  std::size_t home_size_ = 0;
#endif
#ifdef MODEL_TSAN
  void* tsan_self_ = nullptr;
  void* tsan_home_ = nullptr;
#endif
};

}  // namespace model
