# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Programs that use the memory manager (include/bosk/memory.h); nothing else has it.

function(bosk_memory_test)
  bosk_program_test(${ARGN} BOSK_ONLY FLAGS -I${PROJECT_SOURCE_DIR}/include LINK gomp LABELS memory)
endfunction()

foreach(mode areas owners many errors nodes forks)
  bosk_memory_test(NAME bosk_memory_${mode} SOURCES bosk_memory.c ARGS ${mode})
  # The books of a machine whose nodes the kernel does not have.
  bosk_memory_test(NAME bosk_memory_${mode}_numa SOURCES bosk_memory.c ARGS ${mode}
                   ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1" BOSK_WORKERS=4)
endforeach()

foreach(mode sizes behind errors policies owners many ends forks forks-of-others-blocks)
  bosk_memory_test(NAME bosk_malloc_${mode} SOURCES bosk_malloc.c ARGS ${mode})
  bosk_memory_test(NAME bosk_malloc_${mode}_numa SOURCES bosk_malloc.c ARGS ${mode}
                   ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1" BOSK_WORKERS=4)
endforeach()

foreach(mode kinds parts untouched)
  bosk_memory_test(NAME bosk_adopt_${mode} SOURCES bosk_adopt.c ARGS ${mode})
  bosk_memory_test(NAME bosk_adopt_${mode}_numa SOURCES bosk_adopt.c ARGS ${mode}
                   ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1" BOSK_WORKERS=4)
endforeach()

bosk_memory_test(NAME bosk_fork_handlers SOURCES bosk_fork_handlers.c)
bosk_memory_test(NAME bosk_only_malloc SOURCES bosk_only_malloc.c TIMEOUT 60)
bosk_memory_test(NAME bosk_only_malloc_numa SOURCES bosk_only_malloc.c TIMEOUT 60
                 ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1" BOSK_WORKERS=4)

foreach(mode heaps trimmed guards)
  bosk_memory_test(NAME bosk_wild_free_${mode} SOURCES bosk_wild_free.c ARGS ${mode})
  bosk_memory_test(NAME bosk_wild_free_${mode}_numa SOURCES bosk_wild_free.c ARGS ${mode}
                   ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1" BOSK_WORKERS=4)
endforeach()

# "marked" takes time by the size of the area so far, not by what is in it.
foreach(mode known migrated)
  bosk_memory_test(NAME bosk_sparse_${mode} SOURCES bosk_sparse.c ARGS ${mode} TIMEOUT 60)
endforeach()

foreach(mode migrate next-touch located refused errors)
  bosk_memory_test(NAME bosk_moves_${mode} SOURCES bosk_moves.c ARGS ${mode})
  bosk_memory_test(NAME bosk_moves_${mode}_numa SOURCES bosk_moves.c ARGS ${mode}
                   ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1" BOSK_WORKERS=4)
endforeach()

bosk_program_test(NAME memory_face FLAGS -std=c++17 -D_GNU_SOURCE -I${PROJECT_SOURCE_DIR}/include LINK gomp
                  BOSK_ONLY LABELS memory)
bosk_program_test(NAME memory_face_numa SOURCES memory_face.cpp
                  FLAGS -std=c++17 -D_GNU_SOURCE -I${PROJECT_SOURCE_DIR}/include LINK gomp BOSK_ONLY
                  ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1" LABELS memory)
bosk_program_test(NAME f_memory LINK gomp bosk_fortran BOSK_ONLY LABELS memory)
bosk_program_test(NAME f_memory_numa SOURCES f_memory.f90 LINK gomp bosk_fortran BOSK_ONLY
                  ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1" LABELS memory)

# Only threads move: else memory may come to where they are, all of it in the end, and nothing is left to follow.
foreach(policy memory memory@machine,cache@node)
  string(REPLACE "@machine,cache@node" "_and_cache" name ${policy})
  bosk_memory_test(NAME bosk_policy_${name} SOURCES bosk_memory_policy.c
                   ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1" BOSK_WORKERS=8 BOSK_POLICY=${policy}
                       BOSK_MEMORY_MOVES=threads)
endforeach()

# What the report tells of it.
bosk_memory_test(NAME bosk_report_looks SOURCES bosk_memory_policy.c MATCH "^looks  .* told [1-9][0-9]*, "
                 ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1" BOSK_WORKERS=8 BOSK_POLICY=memory
                     BOSK_MEMORY_MOVES=threads BOSK_REPORT=-)
bosk_memory_test(NAME bosk_report_next_touch SOURCES bosk_moves.c ARGS next-touch
                 ENV BOSK_REPORT=- MATCH "^next touch  [1-9][0-9]* pages marked: ")

# What moves after a phase change: by choice, and as it is told to.
foreach(what auto threads data mixed)
  foreach(when attached hint all)
    bosk_memory_test(NAME bosk_memory_moves_${what}_${when} SOURCES bosk_memory_moves.c ARGS ${what} ${when}
                     ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1" BOSK_WORKERS=8 BOSK_POLICY=memory
                         BOSK_MEMORY_MOVES=${what})
  endforeach()
endforeach()
foreach(what auto data mixed)
  foreach(team flat nested inside)
    bosk_program_test(NAME hints_memory_moves_${team}_${what} SOURCES hints_memory_moves.c ARGS ${team} ${what}
                      BOSK_ONLY FLAGS -I${PROJECT_SOURCE_DIR}/include LINK gomp LABELS memory
                      ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1" BOSK_WORKERS=8 BOSK_POLICY=memory
                          BOSK_MEMORY_MOVES=${what})
  endforeach()
endforeach()
# A team that another node takes again and again goes there with its memory, unless that is to stay where it is.
foreach(what auto data mixed threads)
  bosk_program_test(NAME hints_resettle_${what} SOURCES hints_resettle.c ARGS ${what}
                    BOSK_ONLY FLAGS -I${PROJECT_SOURCE_DIR}/include LINK gomp LABELS memory
                    ENV "BOSK_SYNTHETIC=node:2 core:1 pu:1" BOSK_WORKERS=2 BOSK_POLICY=memory
                        BOSK_MEMORY_MOVES=${what})
endforeach()
bosk_memory_test(NAME bosk_memory_moves_bad SOURCES bosk_memory_moves.c ARGS auto attached
                 ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1" BOSK_WORKERS=8 BOSK_POLICY=memory
                     BOSK_MEMORY_MOVES=everything
                 MATCH "^bosk: BOSK_MEMORY_MOVES=everything is not a thing to move; accepted: auto, threads, data, next-touch, mixed; using auto")
bosk_memory_test(NAME bosk_memory_watch_bad SOURCES bosk_memory_moves.c ARGS auto attached
                 ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1" BOSK_WORKERS=8 BOSK_POLICY=memory
                     BOSK_MEMORY_WATCH=eyes
                 MATCH "^bosk: BOSK_MEMORY_WATCH=eyes is not a way to watch memory; accepted: auto, off, counters, pages; using auto")
