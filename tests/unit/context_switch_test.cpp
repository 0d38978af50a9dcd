// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The switch itself: what it saves, how a first frame looks, where unwinding ends.
#include "context/switch.h"

#include <execinfo.h>
#include <fenv.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "context_support.h"

using namespace bosk;
using context::bosk_context_switch;
using context::make_context;

#if defined(__x86_64__)
// rbx, rbp, r12-r15.
constexpr size_t kSaved = 6;
asm(R"(
	.text
	.type	bosk_test_switch, @function
bosk_test_switch:
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	pushq	%rsi
	movq	0(%rdi), %rbx
	movq	8(%rdi), %rbp
	movq	16(%rdi), %r12
	movq	24(%rdi), %r13
	movq	32(%rdi), %r14
	movq	40(%rdi), %r15
	movq	%rdx, %rdi
	movq	%rcx, %rsi
	xorl	%edx, %edx
	call	bosk_context_switch
	popq	%rsi
	movq	%rbx, 0(%rsi)
	movq	%rbp, 8(%rsi)
	movq	%r12, 16(%rsi)
	movq	%r13, 24(%rsi)
	movq	%r14, 32(%rsi)
	movq	%r15, 40(%rsi)
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	ret
	.size	bosk_test_switch, .-bosk_test_switch
)");
#else
// x19-x28, x29, d8-d15.
constexpr size_t kSaved = 19;
asm(R"(
	.text
	.type	bosk_test_switch, %function
bosk_test_switch:
	sub	sp, sp, #176
	stp	x19, x20, [sp, #0]
	stp	x21, x22, [sp, #16]
	stp	x23, x24, [sp, #32]
	stp	x25, x26, [sp, #48]
	stp	x27, x28, [sp, #64]
	stp	x29, x30, [sp, #80]
	stp	d8, d9, [sp, #96]
	stp	d10, d11, [sp, #112]
	stp	d12, d13, [sp, #128]
	stp	d14, d15, [sp, #144]
	str	x1, [sp, #160]
	ldp	x19, x20, [x0, #0]
	ldp	x21, x22, [x0, #16]
	ldp	x23, x24, [x0, #32]
	ldp	x25, x26, [x0, #48]
	ldp	x27, x28, [x0, #64]
	ldr	x29, [x0, #80]
	ldp	d8, d9, [x0, #88]
	ldp	d10, d11, [x0, #104]
	ldp	d12, d13, [x0, #120]
	ldp	d14, d15, [x0, #136]
	mov	x0, x2
	mov	x1, x3
	mov	x2, #0
	bl	bosk_context_switch
	ldr	x1, [sp, #160]
	stp	x19, x20, [x1, #0]
	stp	x21, x22, [x1, #16]
	stp	x23, x24, [x1, #32]
	stp	x25, x26, [x1, #48]
	stp	x27, x28, [x1, #64]
	str	x29, [x1, #80]
	stp	d8, d9, [x1, #88]
	stp	d10, d11, [x1, #104]
	stp	d12, d13, [x1, #120]
	stp	d14, d15, [x1, #136]
	ldp	x19, x20, [sp, #0]
	ldp	x21, x22, [sp, #16]
	ldp	x23, x24, [sp, #32]
	ldp	x25, x26, [sp, #48]
	ldp	x27, x28, [sp, #64]
	ldp	x29, x30, [sp, #80]
	ldp	d8, d9, [sp, #96]
	ldp	d10, d11, [sp, #112]
	ldp	d12, d13, [sp, #128]
	ldp	d14, d15, [sp, #144]
	add	sp, sp, #176
	ret
	.size	bosk_test_switch, .-bosk_test_switch
)");
#endif

/// Loads the registers that a callee must save from `in`, switches, and stores them to `out` when
/// somebody switches back.
extern "C" void bosk_test_switch(const uint64_t* in, uint64_t* out, void** save_sp, void* to_sp);

namespace {

/// A context on a stack of its own, under the identity of whoever resumes it.
class PlainContext {
 public:
  PlainContext(void (*entry)(void*), void* argument)
      : stack_(new char[kBytes]), sp_(make_context(stack_.get() + kBytes, entry, argument)) {}
  void resume() { bosk_context_switch(&caller_, sp_, 0); }
  void yield() { bosk_context_switch(&sp_, caller_, 0); }
  void** sp() { return &sp_; }
  void** caller() { return &caller_; }

 private:
  static constexpr size_t kBytes = 256 * 1024;
  std::unique_ptr<char[]> stack_;
  void* sp_;
  void* caller_ = nullptr;
};

using Registers = std::array<uint64_t, kSaved>;

Registers pattern(uint64_t seed) {
  Registers registers;
  for (size_t i = 0; i < kSaved; ++i) registers[i] = seed * 0x0101010101010101 + i * 0x1000003;
  return registers;
}

struct Pair {
  void* sp[2];
  Registers after[2][8];
  int rounds = 0;
};

TEST(ContextSwitch, preserves_callee_saved_registers) {
  static Pair pair;
  PlainContext other(
      [](void*) {
        for (int i = 0;; ++i) {
          const Registers in = pattern(0x80 + i);
          // Index 7 stays unused, for the last switch comes back no more.
          bosk_test_switch(in.data(), pair.after[1][i].data(), &pair.sp[1], pair.sp[0]);
        }
      },
      nullptr);
  pair.sp[1] = *other.sp();
  for (int i = 0; i < 7; ++i) {
    const Registers in = pattern(0x11 + i);
    bosk_test_switch(in.data(), pair.after[0][i].data(), &pair.sp[0], pair.sp[1]);
  }
  for (int i = 0; i < 7; ++i) EXPECT_EQ(pair.after[0][i], pattern(0x11 + i)) << i;
  for (int i = 0; i < 6; ++i) EXPECT_EQ(pair.after[1][i], pattern(0x80 + i)) << i;
}

TEST(ContextSwitch, each_context_has_its_own_float_control) {
  static PlainContext* other;
  static std::vector<int> seen;
  static std::vector<double> thirds;
  seen.clear();
  PlainContext context(
      [](void*) {
        for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
          fesetround(mode);
          volatile double one = 1, three = 3;
          const double before = one / three;
          other->yield();
          seen.push_back(fegetround());
          thirds.push_back(one / three - before);
        }
        for (;;) other->yield();
      },
      nullptr);
  other = &context;
  for (int i = 0; i < 4; ++i) {
    fesetround(FE_TONEAREST);
    context.resume();
    EXPECT_EQ(fegetround(), FE_TONEAREST);
  }
  EXPECT_EQ(seen, (std::vector<int>{FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}));
  for (const double difference : thirds) EXPECT_EQ(difference, 0.0);
}

TEST(ContextSwitch, a_new_context_starts_with_its_makers_float_control) {
  static PlainContext* other;
  static context::FloatControl inside;
  static int rounding;
  fesetround(FE_DOWNWARD);
#if defined(__x86_64__)
  // Flush to zero and denormals are zero, as -ffast-math programs have them.
  const unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before | 0x8040);
#endif
  const context::FloatControl made_with = context::float_control();
  PlainContext context(
      [](void*) {
        inside = context::float_control();
        rounding = fegetround();
        for (;;) other->yield();
      },
      nullptr);
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(before);
#endif
  fesetround(FE_TONEAREST);
  other = &context;
  context.resume();
  EXPECT_TRUE(context::same_float_control(inside, made_with));
  EXPECT_EQ(rounding, FE_DOWNWARD);
  EXPECT_EQ(fegetround(), FE_TONEAREST);
}

TEST(ContextSwitch, float_control_goes_round) {
  const context::FloatControl before = context::float_control();
  fesetround(FE_UPWARD);
  const context::FloatControl upward = context::float_control();
  EXPECT_FALSE(context::same_float_control(before, upward));
  context::set_float_control(before);
  EXPECT_EQ(fegetround(), FE_TONEAREST);
  context::set_float_control(upward);
  EXPECT_EQ(fegetround(), FE_UPWARD);
  fesetround(FE_TONEAREST);
}

#if defined(__x86_64__)
TEST(ContextSwitch, exception_flags_are_no_setting) {
  feclearexcept(FE_ALL_EXCEPT);
  const context::FloatControl before = context::float_control();
  volatile double one = 1, three = 3;
  volatile double third = one / three;
  (void)third;
  ASSERT_NE(fetestexcept(FE_INEXACT), 0);
  EXPECT_TRUE(context::same_float_control(before, context::float_control()));
}
#endif

TEST(ContextSwitch, first_frame_is_aligned) {
  static PlainContext* other;
  static uintptr_t frame, local;
  static void* argument_seen;
  int argument;
  PlainContext context(
      [](void* given) {
        alignas(16) volatile char probe[16] = {};
        local = reinterpret_cast<uintptr_t>(&probe[0]);
        frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
        argument_seen = given;
        // printf with a double uses aligned vector stores.
        char text[64];
        snprintf(text, sizeof text, "%f %f", 1.5, 2.5);
        for (;;) other->yield();
      },
      &argument);
  other = &context;
  context.resume();
  EXPECT_EQ(argument_seen, &argument);
  EXPECT_EQ(frame % 16, 0u);
  EXPECT_EQ(local % 16, 0u);
}

TEST(ContextSwitch, any_stack_top_will_do) {
  static PlainContext* unused;
  (void)unused;
  static void* back;
  static void* there;
  static uintptr_t frame;
  std::vector<char> stack(128 * 1024);
  for (size_t cut = 0; cut < 65; ++cut) {
    frame = 1;
    there = make_context(
        stack.data() + stack.size() - cut,
        [](void*) {
          frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
          bosk_context_switch(&there, back, 0);
        },
        nullptr);
    bosk_context_switch(&back, there, 0);
    EXPECT_EQ(frame % 16, 0u) << cut;
  }
}

TEST(ContextSwitch, unwinding_ends_at_the_entry_frame) {
  static void* frames[64];
  static int count;
  context_test::DonorContext context(
      [](context_test::DonorContext&) { count = backtrace(frames, 64); });
  ASSERT_NE(context.identity(), nullptr) << strerror(context.error());
  context.resume();
  ASSERT_GT(count, 1);
  ASSERT_LT(count, 64);
  const auto entry = reinterpret_cast<uintptr_t>(&context::bosk_context_entry);
  const auto last = reinterpret_cast<uintptr_t>(frames[count - 1]);
  EXPECT_GT(last, entry);
  EXPECT_LT(last, entry + 32);
}

TEST(ContextSwitch, exceptions_within_a_context) {
  std::vector<std::string> caught;
  context_test::DonorContext context([&](context_test::DonorContext& self) {
    for (int i = 0; i < 3; ++i) {
      try {
        try {
          throw std::runtime_error("inner " + std::to_string(i));
        } catch (const std::runtime_error& error) {
          self.yield();
          caught.push_back(error.what());
          throw std::logic_error("outer " + std::to_string(i));
        }
      } catch (const std::logic_error& error) {
        self.yield();
        caught.push_back(error.what());
      }
    }
  });
  ASSERT_NE(context.identity(), nullptr) << strerror(context.error());
  while (!context.done()) {
    // One of ours is on its way too.
    try {
      throw 7;
    } catch (int value) {
      context.resume();
      EXPECT_EQ(value, 7);
      EXPECT_EQ(std::uncaught_exceptions(), 0);
    }
  }
  EXPECT_EQ(caught, (std::vector<std::string>{"inner 0", "outer 0", "inner 1", "outer 1", "inner 2",
                                              "outer 2"}));
}

TEST(ContextSwitchDeathTest, an_exception_that_nobody_catches_terminates) {
  EXPECT_DEATH(
      {
        context::identity_forget_after_fork();
        context_test::DonorContext context(
            [](context_test::DonorContext&) { throw std::runtime_error("nobody's"); });
        context.resume();
      },
      "nobody's");
}

TEST(ContextSwitch, switches_deeply_nested) {
  // Each context starts the next and waits for it: 100 first frames alive at once.
  struct Level {
    std::unique_ptr<PlainContext> context;
    int depth;
  };
  static std::vector<Level> levels;
  static std::vector<int> order;
  levels.resize(100);
  for (int i = 0; i < 100; ++i) {
    levels[i].depth = i;
    levels[i].context = std::make_unique<PlainContext>(
        [](void* argument) {
          auto* level = static_cast<Level*>(argument);
          order.push_back(level->depth);
          if (level->depth + 1 < 100) levels[level->depth + 1].context->resume();
          order.push_back(level->depth);
          for (;;) level->context->yield();
        },
        &levels[i]);
  }
  levels[0].context->resume();
  ASSERT_EQ(order.size(), 200u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(order[i], i);
    EXPECT_EQ(order[199 - i], i);
  }
  levels.clear();
}

}  // namespace
