// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which calls of loaded objects are led to us: small libraries that are compiled here, one of them in our place.
#include "context/taken_calls.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>

#include <fstream>
#include <optional>

#include "context_support.h"

using namespace bosk;
using context::LoadedObject;
using context::Precedence;
using context_test::Folder;

namespace {

std::optional<LoadedObject> object_with(uintptr_t address) {
  struct Search {
    uintptr_t address;
    std::optional<LoadedObject> found;
  } search{address, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* argument) {
        auto* searched = static_cast<Search*>(argument);
        const LoadedObject object{info->dlpi_name, info->dlpi_addr, info->dlpi_phdr,
                                  info->dlpi_phnum};
        if (context::contains(object, searched->address)) searched->found = object;
        return 0;
      },
      &search);
  return search.found;
}

/// A library in the test's process.
class Library {
 public:
  Library(const std::string& source, const std::string& flags, int how = RTLD_LAZY | RTLD_LOCAL) {
    const std::string path = folder_.file("libprobe.so");
    if (context_test::compile(folder_, "gcc -shared -fPIC -nostdlib -w -fno-builtin " + flags, ".c",
                              source, path))
      handle_ = dlopen(path.c_str(), how);
  }
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  bool loaded() const { return handle_ != nullptr; }
  void* symbol(const char* name) const { return dlsym(handle_, name); }
  int call(const char* function) const { return reinterpret_cast<int (*)()>(symbol(function))(); }
  LoadedObject object(const char* function) const {
    return *object_with(reinterpret_cast<uintptr_t>(symbol(function)));
  }

 private:
  Folder folder_;
  void* handle_ = nullptr;
};

LoadedObject libc_object() {
  return *object_with(reinterpret_cast<uintptr_t>(&gnu_get_libc_version));
}

constexpr const char* kOurs =
    "int sched_yield(void) { return 77; } int prctl(int o, ...) { return 78; } int where;";
constexpr const char* kUser =
    "int sched_yield(void); int prctl(int, ...); int personality(unsigned long);\n"
    "int yield(void) { return sched_yield(); }\n"
    "int dumpable(void) { return prctl(3); }\n";

/// The protection of the mapping that has `address`, as /proc/self/maps shows it.
std::string protection_of(uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t low = 0, high = 0;
    char protection[5] = "";
    if (sscanf(line.c_str(), "%lx-%lx %4s", &low, &high, protection) == 3 && address >= low &&
        address < high)
      return protection;
  }
  return "";
}

uintptr_t slot_of(const LoadedObject& object, const char* name) {
  struct Search {
    std::string name;
    uintptr_t slot;
  } search{name, 0};
  context::for_each_slot(
      object,
      [](const char* symbol, uintptr_t* slot, void* argument) {
        auto* searched = static_cast<Search*>(argument);
        if (searched->name == symbol) searched->slot = reinterpret_cast<uintptr_t>(slot);
      },
      &search);
  return search.slot;
}

/// Sanitizers have functions of their own before libc's.
class TakenCallsOf : public testing::Test {
 protected:
  void SetUp() override {
    if (context_test::kSanitized) GTEST_SKIP();
  }
};
class TakenCalls : public TakenCallsOf, public testing::WithParamInterface<const char*> {};

TEST_P(TakenCalls, lead_to_us_where_they_led_to_libc) {
  const Library ours(kOurs, "");
  const Library user(kUser, GetParam());
  ASSERT_TRUE(ours.loaded() && user.loaded());
  const Precedence precedence{ours.object("where"), libc_object(), false};
  const LoadedObject object = user.object("yield");
  const uintptr_t slot = slot_of(object, "sched_yield");
  ASSERT_NE(slot, 0u);
  const std::string before = protection_of(slot);
  EXPECT_EQ(context::take_calls(object, precedence), nullptr);
  EXPECT_EQ(user.call("yield"), 77);
  EXPECT_EQ(user.call("dumpable"), 78);
  EXPECT_EQ(protection_of(slot), before);
  EXPECT_EQ(context::take_calls(object, precedence), nullptr) << "once more";
  EXPECT_EQ(user.call("yield"), 77);
}

// Looked up when it is called; when the library is loaded, and read-only from then on; not by way of a table of jumps.
INSTANTIATE_TEST_SUITE_P(Objects, TakenCalls,
                         testing::Values("-Wl,-z,lazy", "-Wl,-z,now,-z,relro",
                                         "-Wl,-z,now,-z,norelro", "-fno-plt -Wl,-z,relro"));

TEST_F(TakenCallsOf, after_the_first_call_as_well) {
  const Library ours(kOurs, "");
  const Library user(kUser, "-Wl,-z,lazy");
  ASSERT_TRUE(ours.loaded() && user.loaded());
  EXPECT_EQ(user.call("yield"), 0);
  EXPECT_EQ(context::take_calls(user.object("yield"),
                                Precedence{ours.object("where"), libc_object(), false}),
            nullptr);
  EXPECT_EQ(user.call("yield"), 77);
}

TEST_F(TakenCallsOf, somebody_else_are_left_alone) {
  const Library ours(kOurs, "");
  const Library another("int mine(void) { return 9; }", "");
  const Library user(kUser, "-Wl,-z,now");
  ASSERT_TRUE(ours.loaded() && another.loaded() && user.loaded());
  const LoadedObject object = user.object("yield");
  for (const char* name : {"sched_yield", "prctl"}) {
    auto* slot = reinterpret_cast<uintptr_t*>(slot_of(object, name));
    ASSERT_TRUE(context::change_slot(object, slot, *slot,
                                     reinterpret_cast<uintptr_t>(another.symbol("mine"))));
  }
  EXPECT_STREQ(context::take_calls(object, Precedence{ours.object("where"), libc_object(), false}),
               "prctl");
  EXPECT_EQ(user.call("yield"), 9);
  EXPECT_EQ(user.call("dumpable"), 9);
}

TEST_F(TakenCallsOf, say_which_of_them_we_have_not) {
  const Library ours("int sched_yield(void) { return 77; } int where;", "");
  const Library user(kUser, "-Wl,-z,now");
  ASSERT_TRUE(ours.loaded() && user.loaded());
  EXPECT_STREQ(context::take_calls(user.object("yield"),
                                   Precedence{ours.object("where"), libc_object(), false}),
               "prctl");
  EXPECT_EQ(user.call("yield"), 77);
  EXPECT_NE(user.call("dumpable"), 78);
}

TEST_F(TakenCallsOf, come_to_us_by_themselves_where_we_come_first) {
  const Library ours(kOurs, "");
  const Library user(kUser, "-Wl,-z,lazy");
  ASSERT_TRUE(ours.loaded() && user.loaded());
  const LoadedObject object = user.object("yield");
  const auto* slot = reinterpret_cast<const uintptr_t*>(slot_of(object, "sched_yield"));
  const uintptr_t before = *slot;
  EXPECT_EQ(context::take_calls(object, Precedence{ours.object("where"), libc_object(), true}),
            nullptr);
  EXPECT_EQ(*slot, before) << "the loader will find ours";
}

TEST_F(TakenCallsOf, a_slot_that_has_another_value_is_not_written) {
  const Library user(kUser, "-Wl,-z,now,-z,relro");
  ASSERT_TRUE(user.loaded());
  const LoadedObject object = user.object("yield");
  auto* slot = reinterpret_cast<uintptr_t*>(slot_of(object, "sched_yield"));
  const uintptr_t before = *slot;
  EXPECT_FALSE(context::change_slot(object, slot, before + 1, 1));
  EXPECT_EQ(*slot, before);
  EXPECT_EQ(user.call("yield"), 0);
}

TEST_F(TakenCallsOf, the_order_of_objects_says_who_comes_first) {
  const LoadedObject us = *object_with(reinterpret_cast<uintptr_t>(&context::take_calls));
  Precedence first, second;
  first.see(us);
  first.see(libc_object());
  EXPECT_TRUE(first.we_come_first);
  second.see(libc_object());
  second.see(us);
  EXPECT_FALSE(second.we_come_first);
}

/// Of several versions, the one that new programs get.
TEST_F(TakenCallsOf, functions_of_libc_are_those_of_new_programs) {
  void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  ASSERT_NE(libc, nullptr);
  for (const char* name : {"sched_yield", "pthread_setaffinity_np", "sched_getaffinity",
                           "timer_create", "pthread_setname_np"}) {
    EXPECT_EQ(context::find_function(libc_object(), name), dlsym(libc, name)) << name;
  }
  EXPECT_EQ(context::find_function(libc_object(), "no_such_function"), nullptr);
}

}  // namespace
