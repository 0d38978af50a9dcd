# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# bosk/sync.h: programs that call the library's own interface, on whatever threads.
set(bosk_interface FLAGS -D_GNU_SOURCE -I${CMAKE_CURRENT_LIST_DIR}/../../include LINK gomp BOSK_ONLY)

bosk_program_test(NAME sync_api ${bosk_interface})
bosk_program_test(NAME sync_api_on_kernel_threads SOURCES sync_api.c ${bosk_interface}
                  ENV BOSK_IDENTITY=kernel-thread)
foreach(workers 1 2)
  foreach(mode flat nested pthreads mixed)
    bosk_program_test(NAME sync_${mode}_on_${workers} SOURCES sync_teams.c ARGS ${mode} 8 ${bosk_interface}
                      ENV BOSK_WORKERS=${workers} BOSK_PREEMPT_PERIOD=200us)
  endforeach()
endforeach()
bosk_program_test(NAME sync_flat_relaxed SOURCES sync_teams.c ARGS flat 70 ${bosk_interface}
                  ENV BOSK_IDENTITY=relaxed)
foreach(mode flat nested mixed)
  bosk_program_test(NAME sync_${mode}_on_kernel_threads SOURCES sync_teams.c ARGS ${mode} 6 ${bosk_interface}
                    ENV BOSK_IDENTITY=kernel-thread)
endforeach()
foreach(mode sleep read write accept poll)
  bosk_program_test(NAME sync_progress_${mode} SOURCES sync_progress.c ARGS ${mode} ${bosk_interface}
                    ENV BOSK_WORKERS=1 BOSK_PREEMPT_PERIOD=off)
endforeach()
bosk_program_test(NAME sync_progress_ticks SOURCES sync_progress.c ${bosk_interface}
                  ENV BOSK_WORKERS=2 BOSK_PREEMPT_PERIOD=100us)
bosk_program_test(NAME sync_progress_on_kernel_threads SOURCES sync_progress.c ${bosk_interface}
                  ENV BOSK_IDENTITY=kernel-thread)
foreach(workers 1 2)
  bosk_program_test(NAME sync_fork_on_${workers} SOURCES sync_fork.c ${bosk_interface} ENV BOSK_WORKERS=${workers})
endforeach()
bosk_program_test(NAME sync_fork_keys ${bosk_interface})
bosk_program_test(NAME sync_fork_once ${bosk_interface})

# --- bosk/topology.h ------------------------------------------------------------------------------
bosk_program_test(NAME topology_queries ${bosk_interface})
bosk_program_test(NAME topology_queries_on_one SOURCES topology_queries.c ${bosk_interface} WRAPPER taskset -c 0)
bosk_program_test(NAME topology_queries_nps SOURCES topology_queries.c ARGS 16 4 ${bosk_interface} ENV BOSK_WORKERS=16
                  BOSK_TOPOLOGY_XML=${CMAKE_CURRENT_LIST_DIR}/../data/topology/nps.xml)
bosk_program_test(NAME topology_queries_asymmetric SOURCES topology_queries.c ARGS 11 2 ${bosk_interface}
                  ENV BOSK_WORKERS=11 BOSK_TOPOLOGY_XML=${CMAKE_CURRENT_LIST_DIR}/../data/topology/asymmetric.xml)

# --- with bosk/bosk.h -----------------------------------------------------------------------------
foreach(workers 1 2 4)
  foreach(kind ordinary light)
    bosk_program_test(NAME sync_threads_${kind}_on_${workers} SOURCES sync_threads.c ARGS ${kind} ${bosk_interface}
                      ENV BOSK_WORKERS=${workers})
  endforeach()
endforeach()
bosk_program_test(NAME sync_threads_without_ticks SOURCES sync_threads.c ARGS light ${bosk_interface}
                  ENV BOSK_WORKERS=1 BOSK_PREEMPT_PERIOD=off)
bosk_program_test(NAME sync_threads_ticks SOURCES sync_threads.c ARGS ordinary ${bosk_interface}
                  ENV BOSK_WORKERS=2 BOSK_PREEMPT_PERIOD=100us)

# --- bosk/tree.h ----------------------------------------------------------------------------------
set(nps BOSK_WORKERS=16 BOSK_TOPOLOGY_XML=${CMAKE_CURRENT_LIST_DIR}/../data/topology/nps.xml)
bosk_program_test(NAME machine_tree_here SOURCES machine_tree.c ARGS machine 1 1 ${bosk_interface})
bosk_program_test(NAME machine_tree_nodes SOURCES machine_tree.c ARGS node 4 7 ${bosk_interface} ENV ${nps})
bosk_program_test(NAME machine_tree_caches SOURCES machine_tree.c ARGS llc 8 15 ${bosk_interface} ENV ${nps})

# --- bosk/bosk.hpp, in the oldest C++ that it is for ----------------------------------------------
foreach(workers 1 3)
  bosk_program_test(NAME face_on_${workers} SOURCES face.cpp FLAGS -std=c++17 -D_GNU_SOURCE
                    -I${CMAKE_CURRENT_LIST_DIR}/../../include LINK gomp BOSK_ONLY ENV BOSK_WORKERS=${workers})
endforeach()

# --- the Fortran module ---------------------------------------------------------------------------
bosk_program_test(NAME f_bosk LINK gomp bosk_fortran BOSK_ONLY)
bosk_program_test(NAME f_bosk_on_one LINK gomp bosk_fortran BOSK_ONLY SOURCES f_bosk.f90
                  ENV BOSK_WORKERS=1 BOSK_PREEMPT_PERIOD=off)

# --- OpenMP's own locks ---------------------------------------------------------------------------
bosk_program_test(NAME lock_first FLAGS -D_GNU_SOURCE)
