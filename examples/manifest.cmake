# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The examples, with the arguments and environment of their test runs.
bosk_example(NAME conduction SOURCES conduction.c ARGS 130 97 201 4 4)
bosk_example(NAME conduction_many_stripes SOURCES conduction.c ARGS 64 200 31 16 8)
bosk_example(NAME fibonacci SOURCES fibonacci.c ARGS 18 7 10)
bosk_example(NAME nested-stream SOURCES nested-stream.f90 ARGS 5000 100 4 4)
bosk_example(NAME nested-stream_uneven SOURCES nested-stream.f90 ARGS 1001 50 3 7)
bosk_example(NAME amr SOURCES amr.cpp ARGS 4 3 6)
bosk_example(NAME amr_passive SOURCES amr.cpp ARGS 3 4 4 ENV OMP_WAIT_POLICY=passive)
# Not for tests/programs/run_all.sh, which has no bosk to link with.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  include("${CMAKE_CURRENT_LIST_DIR}/bubbles/manifest.cmake")
endif()
