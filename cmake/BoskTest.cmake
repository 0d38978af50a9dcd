# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# bosk_unit_test(file KIND): one GoogleTest executable and one CTest test from one source file.

if(NOT CMAKE_CROSSCOMPILING)
  find_package(GTest QUIET)
endif()
if(NOT GTest_FOUND)
  # The cross build: Debian's googletest package holds the sources.
  if(NOT EXISTS /usr/src/googletest/CMakeLists.txt)
    message(FATAL_ERROR "bosk: GoogleTest was not found; run ./dev setup")
  endif()
  set(INSTALL_GTEST OFF)
  add_subdirectory(/usr/src/googletest "${PROJECT_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL)
  foreach(part gmock gtest gtest_main)
    if(NOT TARGET GTest::${part})
      add_library(GTest::${part} ALIAS ${part})
    endif()
  endforeach()
endif()
if(NOT CMAKE_CROSSCOMPILING)
  find_package(rapidcheck QUIET)
endif()

# Every test executable; `cmake --build … --target bosk_tests` builds them and nothing else.
add_custom_target(bosk_tests)

# A hang must fail. Sanitizers and emulation run several times slower.
set(BOSK_DEFAULT_TIMEOUT 60)
set(BOSK_UNIT_TIMEOUT 120)
if(BOSK_SANITIZE OR CMAKE_CROSSCOMPILING)
  set(BOSK_DEFAULT_TIMEOUT 180)
  set(BOSK_UNIT_TIMEOUT 300)
endif()

# addr2line turns clang's addresses into lines without the llvm package; clang's runtime takes it
# under this name only.
find_program(BOSK_ADDR2LINE addr2line)
set(BOSK_TEST_ENVIRONMENT)
if(BOSK_SANITIZE STREQUAL "thread")
  set(tsan_options "second_deadlock_stack=1:die_after_fork=0")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND BOSK_ADDR2LINE)
    string(APPEND tsan_options ":external_symbolizer_path=${BOSK_ADDR2LINE}")
  endif()
  if(EXISTS "${PROJECT_SOURCE_DIR}/tests/tsan.supp")
    string(APPEND tsan_options ":suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp")
  endif()
  list(APPEND BOSK_TEST_ENVIRONMENT "TSAN_OPTIONS=${tsan_options}")
endif()
include(BoskAsan)

# Can what users build with -fsanitize=thread run here? Where addresses are too random, it cannot.
if("programs" IN_LIST BOSK_TEST_KINDS AND NOT BOSK_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  include(CheckCSourceRuns)
  set(CMAKE_REQUIRED_FLAGS -fsanitize=thread)
  check_c_source_runs("int main(void) { return 0; }" BOSK_CAN_RUN_TSAN)
  unset(CMAKE_REQUIRED_FLAGS)
  if(NOT BOSK_CAN_RUN_TSAN)
    message(STATUS "bosk: programs built with -fsanitize=thread do not run here, and are not tested")
  endif()
endif()

# What a file is about is what its name says before the first `_`: context_switch_test → context.
function(bosk_topic_of file out)
  get_filename_component(stem "${file}" NAME_WE)
  string(REGEX REPLACE "_.*" "" topic "${stem}")
  set(${out} "${topic}" PARENT_SCOPE)
endfunction()

# What the tests are linked with.
set(BOSK_TEST_OBJECTS bosk_core)
if(TARGET bosk_context_core)
  set(BOSK_TEST_OBJECTS bosk_context_core)
endif()

# Most of a test's compilation is GoogleTest's and the standard library's: they are precompiled once for each kind of test,
# whose flags agree. Not with a compiler cache, which would no longer find what it has.
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
  set(BOSK_PRECOMPILE_DEFAULT OFF)
else()
  set(BOSK_PRECOMPILE_DEFAULT ON)
endif()
option(BOSK_PRECOMPILE "Precompile the headers that all unit tests include" ${BOSK_PRECOMPILE_DEFAULT})

# All that decides how a test's own file is compiled.
function(bosk_unit_test_options target kind)
  target_link_libraries(${target} PRIVATE bosk_testing GTest::gmock GTest::gtest)
  if(rapidcheck_FOUND)
    target_link_libraries(${target} PRIVATE rapidcheck)
    target_compile_definitions(${target} PRIVATE BOSK_HAVE_RAPIDCHECK)
  endif()
  target_compile_definitions(
    ${target} PRIVATE BOSK_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                      BOSK_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
                      BOSK_TEST_PLUGINS="${PROJECT_BINARY_DIR}/tests/plugins")
  # The core that they test is optimised as ever; the checks themselves take longer to optimise than to run. Stress tests and
  # models are about what optimised code does in each other's way, or compute for long.
  if(kind STREQUAL "unit" AND CMAKE_BUILD_TYPE MATCHES "^Rel")
    target_compile_options(${target} PRIVATE -O1)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # What GCC 12 concludes about values and bounds in the library's own headers (std::string, std::variant) is wrong at -O1,
    # and where they are precompiled it no longer knows that they are not ours. Clang looks at the same files in the other
    # presets.
    foreach(warning array-bounds dangling-pointer free-nonheap-object maybe-uninitialized nonnull restrict stringop-overflow
                    stringop-overread use-after-free)
      target_compile_options(${target} PRIVATE -Wno-${warning})
    endforeach()
  endif()
endfunction()

function(bosk_precompile target kind)
  if(NOT BOSK_PRECOMPILE)
    return()
  endif()
  set(owner "bosk_precompiled_${kind}")
  if(NOT TARGET ${owner})
    file(GENERATE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${owner}.cpp" CONTENT "")
    add_library(${owner} OBJECT EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/${owner}.cpp")
    bosk_unit_test_options(${owner} ${kind})
    target_precompile_headers(${owner} PRIVATE "${PROJECT_SOURCE_DIR}/tests/precompiled.h")
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

function(bosk_unit_test file kind)
  get_filename_component(stem "${file}" NAME_WE)
  bosk_topic_of("${file}" topic)
  set(target "${kind}_${stem}")
  add_executable(${target} "${file}" $<TARGET_OBJECTS:${BOSK_TEST_OBJECTS}>)
  set_target_properties(
    ${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/${kind}"
                         OUTPUT_NAME "${stem}")
  bosk_unit_test_options(${target} ${kind})
  bosk_precompile(${target} ${kind})
  # gtest_main is an archive: a file with a main() of its own keeps it.
  target_link_libraries(${target} PRIVATE GTest::gtest_main)
  # The tool links it as well.
  if(topic STREQUAL "affinity" OR topic STREQUAL "tools")
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:bosk_affinity>)
  endif()
  # The plugin that counts accesses in the lab is no part of the core.
  if(topic STREQUAL "locality")
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:bosk_locality_core>)
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  endif()
  if(topic STREQUAL "tools")
    target_link_libraries(${target} PRIVATE bosk_tool)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:bosk_tool>)
  endif()
  add_dependencies(bosk_tests ${target})

  # The target's name as command: CMake puts the emulator before it in the cross build.
  set(name "${BOSK_TEST_PREFIX}${kind}.${stem}")
  add_test(NAME "${name}" COMMAND ${target})
  set_tests_properties(
    "${name}" PROPERTIES LABELS "${kind};${topic}" TIMEOUT ${BOSK_UNIT_TIMEOUT}
                         ENVIRONMENT "${BOSK_TEST_ENVIRONMENT}")
  bosk_under_asan("${name}")
endfunction()
