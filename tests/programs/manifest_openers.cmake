# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What the opener of a region had stays its own, its stack included (docs/identity.md). Included by manifest.cmake.

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
