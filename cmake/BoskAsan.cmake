# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The tests under AddressSanitizer (preset asan): with which options they run, and which cannot, and why.
# The models (tests/model) are no part of it: they run the library's protocols on invented memory, leave executions
# in the middle (which leak by design), and without optimisation only a sample of them. They were clean otherwise.

if(NOT BOSK_SANITIZE MATCHES "address")
  function(bosk_under_asan name)
  endfunction()
  return()
endif()

# A finding ends a program with a status that no test expects.
set(BOSK_ASAN_OPTIONS exitcode=66:detect_stack_use_after_return=1)
list(APPEND BOSK_TEST_ENVIRONMENT "ASAN_OPTIONS=${BOSK_ASAN_OPTIONS}"
     "UBSAN_OPTIONS=print_stacktrace=1")

# Pairs of a regular expression for names, and the reason. ctest lists these tests as disabled.
set(BOSK_NOT_UNDER_ASAN
    "programs\\.valgrind_" "valgrind and AddressSanitizer both replace malloc and shadow the memory"
    "programs\\..*(pthreads_(short-lived|many_pools)|homes_many_pools)" "AddressSanitizer keeps a record of every thread that ended"
    "programs\\..*fork_beside" "GCC 12's AddressSanitizer lets fork() copy its allocator's locks as they are"
    "programs\\.process_limits_address-space" "AddressSanitizer reserves more address space than the limit"
    "programs\\.plugins_deepbind" "AddressSanitizer refuses RTLD_DEEPBIND"
    "programs\\.(process_children_fork|fork_exits|fork_after|pause_fork|fork_first|bosk_fork_first|bosk_threads_forks)"
    "as fork_beside: other threads allocate at the moment of the fork, or are being made"
    "programs\\.jemalloc_" "AddressSanitizer and jemalloc both replace malloc"
    "programs\\.bosk_only_malloc" "the program's malloc takes the place of AddressSanitizer's"
    "programs\\.tiny_stacks" "sanitized frames do not fit"
    "programs\\.task_memory_" "the program counts memory, also the sanitizer's"
    "two tasks of one member take turns, also in a system call; AddressSanitizer's allocator makes some in the middle of its per-thread lists"
    "programs\\.scale_ghosts_million" "every member has a stack of its own, and this program counts memory")

# The same for those that run without a look for leaks at their end.
set(BOSK_NO_LEAKS_UNDER_ASAN
    "programs\\.setxid_" "after setuid() the kernel forbids the ptrace() that LeakSanitizer needs"
    "programs\\.process_limits_processes" "the kernel refuses the clone() that LeakSanitizer needs"
    "programs\\.plugins_" "as plugin_cycle"
    "programs\\..*refused" "the program lets the kernel refuse the clone() that LeakSanitizer needs"
    "programs\\.plugin_cycle" "LeakSanitizer of GCC 12 reads the TLS of closed plug-ins, on any runtime")

# After the test's other properties are set.
function(bosk_under_asan name)
  set(rest ${BOSK_NOT_UNDER_ASAN})
  while(rest)
    list(POP_FRONT rest regex reason)
    if(name MATCHES "${regex}")
      message(STATUS "bosk: not under AddressSanitizer: ${name}: ${reason}")
      set_tests_properties("${name}" PROPERTIES DISABLED TRUE)
    endif()
  endwhile()
  set(rest ${BOSK_NO_LEAKS_UNDER_ASAN})
  while(rest)
    list(POP_FRONT rest regex reason)
    if(name MATCHES "${regex}")
      message(STATUS "bosk: no look for leaks at the end of ${name}: ${reason}")
      set_property(TEST "${name}" APPEND PROPERTY
                   ENVIRONMENT "ASAN_OPTIONS=${BOSK_ASAN_OPTIONS}:detect_leaks=0")
    endif()
  endwhile()
endfunction()
