# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Workers with homes (docs/binding.md), which this machine has only where it is asked for: one cache, few CPUs.
foreach(mode masks restricted chosen threads)
  bosk_program_test(NAME homes_${mode} SOURCES homes.c ARGS ${mode} ENV BOSK_WORKER_HOMES=on)
endforeach()
bosk_program_test(NAME homes_masks_kthread SOURCES homes.c ARGS masks ENV BOSK_WORKER_HOMES=on BOSK_IDENTITY=kthread)
bosk_program_test(NAME homes_masks_passive SOURCES homes.c ARGS masks ENV BOSK_WORKER_HOMES=on OMP_WAIT_POLICY=passive)
bosk_program_test(NAME homes_masks_off SOURCES homes.c ARGS masks ENV BOSK_WORKER_HOMES=off)
bosk_program_test(NAME homes_masks_ticks SOURCES homes.c ARGS masks
                  ENV BOSK_WORKER_HOMES=on BOSK_PREEMPT_PERIOD=100us BOSK_WORKERS=5)
# What is bound by what the user says has no homes, and is where it was told to be.
bosk_program_test(NAME homes_places SOURCES places.c ENV BOSK_WORKER_HOMES=on OMP_PLACES={1},{0} OMP_PROC_BIND=true ARGS 2 2)
bosk_program_test(NAME homes_gomp SOURCES places.c ENV BOSK_WORKER_HOMES=on GOMP_CPU_AFFINITY=0-1 ARGS 2 1)
bosk_program_test(NAME homes_unbound SOURCES places.c ARGS unbound ENV BOSK_WORKER_HOMES=on)
# An invented machine has no CPUs to sit on.
bosk_program_test(NAME homes_invented SOURCES homes.c ARGS masks BOSK_ONLY
                  ENV BOSK_WORKER_HOMES=on "BOSK_SYNTHETIC=node:2 core:2"
                  MATCH "bosk: BOSK_WORKER_HOMES: .*node:2 core:2.* is not the machine this runs on; workers have no homes")
# What ends workers, makes them anew, or has many pools.
foreach(mode exec spawn fork)
  bosk_program_test(NAME homes_children_${mode} SOURCES process_children.c ARGS ${mode} 6 ENV BOSK_WORKER_HOMES=on)
endforeach()
bosk_program_test(NAME homes_fork SOURCES fork_programs.c ARGS after BOSK_ONLY ENV BOSK_WORKER_HOMES=on)
bosk_program_test(NAME homes_many_pools SOURCES regions_by_pthreads.c ARGS many-pools ENV BOSK_WORKER_HOMES=on)
bosk_program_test(NAME homes_pause SOURCES pause.c ARGS busy BOSK_ONLY ENV BOSK_WORKER_HOMES=on)

# In a cpuset of one CPU (skipped where none can be made).
foreach(mode begins shrinks grows)
  set(cpuset SOURCES cpuset.c ARGS ${mode} SKIP 77 BOSK_ONLY FLAGS -I${PROJECT_SOURCE_DIR}/include LINK gomp)
  bosk_program_test(NAME cpuset_${mode} ${cpuset})
  bosk_program_test(NAME cpuset_${mode}_homes ${cpuset} ENV BOSK_WORKER_HOMES=on BOSK_WORKERS=4)
  bosk_program_test(NAME cpuset_${mode}_kthread ${cpuset} ENV BOSK_IDENTITY=kthread)
  bosk_program_test(NAME cpuset_${mode}_bound ${cpuset} ENV OMP_PROC_BIND=spread OMP_PLACES=cores)
endforeach()
