# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiler flags: bosk_common for everything, bosk_library for all that goes into the library,
# bosk_testing for tests and tools that include from src/.

set(CMAKE_C_STANDARD 11)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON) # inline assembly and statement attributes

find_package(Threads REQUIRED)

# The library can be asked for its version and so can the tool: one place says it.
add_compile_definitions(BOSK_VERSION="${PROJECT_VERSION}")
if(BOSK_ASSERTIONS)
  add_compile_definitions(BOSK_ASSERTIONS)
endif()

# Sanitizers and coverage must see every object, those of the tests too.
if(BOSK_SANITIZE)
  # A finding of any of them ends the program. vptr needs RTTI, which the library does without.
  add_compile_options(-fsanitize=${BOSK_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all
                      -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${BOSK_SANITIZE})
  # To sanitizers an identity and its stack are one thread (docs/design/identity.md, "Sanitizers").
  add_compile_definitions(BOSK_OWN_STACKS)
  # For programs with ThreadSanitizer, which must get on without preemption (context/provider.cpp).
  if(BOSK_SANITIZE STREQUAL "thread" AND "programs" IN_LIST BOSK_TEST_KINDS)
    add_compile_definitions(BOSK_TSAN_PROGRAMS)
  endif()
endif()
if(BOSK_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()

add_library(bosk_common INTERFACE)
target_include_directories(bosk_common INTERFACE "${PROJECT_SOURCE_DIR}/src"
                                                 "${PROJECT_SOURCE_DIR}/include")
target_compile_options(
  bosk_common
  INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Wall
            -Wextra>
            $<$<AND:$<BOOL:${BOSK_WERROR}>,$<COMPILE_LANGUAGE:C,CXX>>:-Werror>)
# GCC 12 warns of overlapping copies inside its own std::string (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(bosk_common INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
# Among AddressSanitizer's checks of pointers GCC 12 takes loads of atomics for stores to nothing.
if(BOSK_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(bosk_common INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>)
endif()
# TSan does not model fences; the protocols that use them say in a comment why that is sound.
if(BOSK_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(bosk_common INTERFACE -Wno-tsan)
endif()

add_library(bosk_library INTERFACE)
target_link_libraries(bosk_library INTERFACE bosk_common)
# initial-exec: the library's TLS is reached without a call, also while preemption is off.
# no-plt: no lazy binding, whose resolver takes libc locks, inside the scheduler.
target_compile_options(
  bosk_library
  INTERFACE -fPIC
            $<$<COMPILE_LANGUAGE:C,CXX>:-fvisibility=hidden
            -ftls-model=initial-exec
            -fno-plt
            -fno-semantic-interposition
            -fasynchronous-unwind-tables>
            $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions
            -fno-rtti
            -fvisibility-inlines-hidden>)
if(BOSK_LTO)
  target_compile_options(bosk_library INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-flto=auto>)
endif()

# A test whose assert() is compiled out proves nothing.
add_library(bosk_testing INTERFACE)
target_link_libraries(bosk_testing INTERFACE bosk_common Threads::Threads ${CMAKE_DL_LIBS})
target_compile_options(bosk_testing INTERFACE -UNDEBUG)

# hwloc is opened at run time, when a machine is first asked for; the build needs its headers only.
# They are the same on every architecture, so that the cross build can borrow the host's.
find_path(BOSK_HWLOC_INCLUDE hwloc.h)
if(BOSK_HWLOC_INCLUDE)
  target_include_directories(bosk_common SYSTEM INTERFACE "${BOSK_HWLOC_INCLUDE}")
elseif(CMAKE_CROSSCOMPILING AND EXISTS /usr/include/hwloc.h)
  set(borrowed "${PROJECT_BINARY_DIR}/host-headers")
  file(MAKE_DIRECTORY "${borrowed}/hwloc/autogen")
  file(GLOB config /usr/include/*/hwloc/autogen/config.h /usr/include/hwloc/autogen/config.h)
  file(COPY /usr/include/hwloc.h DESTINATION "${borrowed}")
  file(COPY /usr/include/hwloc DESTINATION "${borrowed}")
  file(COPY ${config} DESTINATION "${borrowed}/hwloc/autogen")
  target_include_directories(bosk_common SYSTEM INTERFACE "${borrowed}")
else()
  message(FATAL_ERROR "bosk: hwloc.h was not found; run ./dev setup, or install libhwloc-dev")
endif()

# Removes from the list `var` what is for another architecture: files *_x86_64.* and *_aarch64.*.
function(bosk_keep_own_architecture var)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    list(FILTER ${var} EXCLUDE REGEX "_aarch64\\.[a-zA-Z]+$")
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    list(FILTER ${var} EXCLUDE REGEX "_x86_64\\.[a-zA-Z]+$")
  else()
    message(FATAL_ERROR "bosk: ${CMAKE_SYSTEM_PROCESSOR} is not supported; "
                        "bosk knows x86-64 and AArch64")
  endif()
  set(${var} "${${var}}" PARENT_SCOPE)
endfunction()
