# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What the opener of a region had stays its own, its stack included (docs/design/identity.md). Included by manifest.cmake.

foreach(mode main member thread limit early-limit signal)
  set(flags)
  if(mode STREQUAL "signal")
    # Who imports sigaltstack is watched more closely.
    set(flags FLAGS -DWITH_SIGNAL)
  endif()
  foreach(members 2 8 64)
    bosk_program_test(NAME coroutine_stacks_${mode}_${members} SOURCES coroutine_stacks.c ${flags}
                      ARGS ${mode} ${members} LABELS hard)
  endforeach()
  foreach(identity strict kthread)
    bosk_program_test(NAME coroutine_stacks_${mode}_${identity} SOURCES coroutine_stacks.c ${flags}
                      ARGS ${mode} 8 ENV BOSK_IDENTITY=${identity} LABELS hard)
  endforeach()
  bosk_program_test(NAME coroutine_stacks_${mode}_one_worker SOURCES coroutine_stacks.c ${flags}
                    ARGS ${mode} 8 ENV BOSK_WORKERS=1 LABELS hard)
endforeach()

add_library(programs_clock SHARED "${CMAKE_CURRENT_LIST_DIR}/preloaded_clock.c")
target_compile_definitions(programs_clock PRIVATE THE_LIBRARY)
set_target_properties(programs_clock PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${BOSK_PROGRAMS_DIR}/libraries")
add_dependencies(bosk_tests programs_clock)
bosk_program_test(NAME preloaded_clock SOURCES preloaded_clock.c BOSK_ONLY
                  ENV "LD_PRELOAD=$<TARGET_FILE:gomp>:$<TARGET_FILE:programs_clock>")
bosk_program_test(NAME cpu_times_opener SOURCES cpu_times_opener.c ENV OMP_WAIT_POLICY=passive LABELS hard)

foreach(members 2 8 64)
  foreach(subject errno flags texts)
    bosk_program_test(NAME openers_own_${subject}_${members} SOURCES openers_own.c
                      ARGS ${subject} ${members} 20 LABELS hard)
  endforeach()
  # Who imports these names has identities of its own.
  bosk_program_test(NAME openers_own_loader_${members} SOURCES openers_own.c FLAGS -DWITH_LOADER
                    ARGS loader ${members} 20 LABELS hard)
  bosk_program_test(NAME guests_unwinding_${members} SOURCES guests_unwinding.cpp ARGS ${members} LABELS hard)
endforeach()
# What the runtime computes itself, in floating point, raises no flags of the program's.
bosk_program_test(NAME openers_own_flags_by_load SOURCES openers_own.c ARGS flags 2 20 LABELS hard BOSK_ONLY
                  ENV BOSK_LOAD=1:0=3 BOSK_TEAM_SIZE=load)
foreach(variant BOSK_IDENTITY=strict BOSK_IDENTITY=kthread BOSK_WORKERS=1 OMP_WAIT_POLICY=passive OMP_PROC_BIND=true
                BOSK_LEARN_LOAD=on BOSK_POLICY=gang)
  string(REGEX REPLACE "^[A-Z]*_(.*)=(.*)$" "\\1_\\2" name "${variant}")
  string(TOLOWER "${name}" name)
  foreach(subject errno flags texts)
    bosk_program_test(NAME openers_own_${subject}_${name} SOURCES openers_own.c ARGS ${subject} 8 20
                      ENV ${variant} LABELS hard)
  endforeach()
  bosk_program_test(NAME guests_unwinding_${name} SOURCES guests_unwinding.cpp ARGS 8 ENV ${variant} LABELS hard)
endforeach()
