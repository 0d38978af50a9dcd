# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What can be chosen when bosk is configured; CMakePresets.json holds the usual combinations.

option(BOSK_ASSERTIONS "Check the library's own invariants (BOSK_ASSERT)" OFF)
option(BOSK_WERROR "Treat compiler warnings as errors" OFF)
option(BOSK_LTO "Link-time optimisation of the library" OFF)
option(BOSK_COVERAGE "Count which lines run" OFF)
option(BOSK_ALSO_STOCK "Run each program test on the system's libgomp too (NAME.stock)" OFF)
set(BOSK_SANITIZE "" CACHE STRING "Sanitizers of the whole build: address,undefined, or thread, or nothing")
set_property(CACHE BOSK_SANITIZE PROPERTY STRINGS "" "address,undefined" thread)

set(BOSK_TEST_KINDS "unit;model;stress;programs;examples;house" CACHE STRING
    "Kinds of tests to build and register")
set(BOSK_UNIT_FILTER "" CACHE STRING "Build only the unit tests whose file name matches")
set(BOSK_PROGRAM_FILTER "" CACHE STRING "Build only the program tests whose name matches")
set(BOSK_TEST_PREFIX "" CACHE STRING "Put before the name of every test (tells the presets apart)")

# The programs under tests/programs, examples and bench are for gcc -fopenmp; a library with clang's TSan
# inside cannot be loaded into them, with GCC's it is for few; the cross build has no machine to run them.
if(CMAKE_CROSSCOMPILING OR BOSK_SANITIZE STREQUAL "thread")
  set(BOSK_PROGRAMS_DEFAULT OFF)
else()
  set(BOSK_PROGRAMS_DEFAULT ON)
endif()
option(BOSK_BENCH "Configure the benchmarks (built only on demand)" ${BOSK_PROGRAMS_DEFAULT})

# Fortran only adds tests and examples: do without where there is no compiler.
if(BOSK_PROGRAMS_DEFAULT)
  include(CheckLanguage)
  check_language(Fortran)
  if(CMAKE_Fortran_COMPILER)
    enable_language(Fortran)
  else()
    message(STATUS "bosk: no Fortran compiler: the Fortran tests and examples are left out")
  endif()
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
