# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The test programs: ordinary OpenMP programs which check themselves. One call is one test:
#   bosk_program_test(NAME <name> SOURCES <files> [ENV A=b ...] [ARGS ...] [TIMEOUT s] [LINK libs]
#                     [FLAGS ...] [BOSK_ONLY] ...)
#   bosk_program_plugin(NAME <name> SOURCES <files> [FLAGS ...])   lib<name>.so in BOSK_TEST_DIR
# Calls with the same SOURCES, FLAGS and LINK mean the same executable. BOSK_ONLY: stock libgomp cannot
# pass it (the program says why). No value in ENV and ARGS holds a space or a semicolon.

# --- "It must": any conforming program ------------------------------------------------------------
foreach(mode pair ring flush pipeline nested crossed)
  bosk_program_test(NAME spin_${mode} SOURCES spin_flags.c ARGS ${mode})
endforeach()
foreach(mode pair ring pipeline)
  bosk_program_test(NAME spin_${mode}_passive SOURCES spin_flags.c ARGS ${mode} ENV OMP_WAIT_POLICY=passive)
endforeach()
foreach(mode barrier nested-barrier queue turns semaphores pipes)
  bosk_program_test(NAME posix_${mode} SOURCES posix_sync.c ARGS ${mode})
endforeach()
foreach(threads 1 2 3 8 64)
  bosk_program_test(NAME threadprivate_level1_${threads} SOURCES threadprivate_level1.c
                    ENV OMP_NUM_THREADS=${threads})
endforeach()
bosk_program_test(NAME threadprivate_nested SOURCES threadprivate_nested.c)
bosk_program_test(NAME threadprivate_nested_O0 SOURCES threadprivate_nested.c FLAGS -O0)
foreach(threads 2 8 20)
  bosk_program_test(NAME identity_flat_${threads} SOURCES identity.cpp ARGS flat
                    ENV OMP_NUM_THREADS=${threads})
endforeach()
bosk_program_test(NAME identity_nested SOURCES identity.cpp ARGS nested)
bosk_program_test(NAME taskwait_in_catch SOURCES taskwait_in_catch.cpp)
bosk_program_test(NAME first_tick SOURCES first_tick.c ENV BOSK_WORKERS=1 BOSK_PREEMPT_PERIOD=100us)
foreach(workers 1 2)
  bosk_program_test(NAME loader_lock_${workers} SOURCES loader_lock.c
                    ENV BOSK_WORKERS=${workers} BOSK_PREEMPT_PERIOD=100us)
endforeach()
# AddressSanitizer's own memory would be counted: cmake/BoskAsan.cmake.
bosk_program_test(NAME task_memory_million_2 SOURCES task_memory.c ARGS million 2)
bosk_program_test(NAME task_memory_million_16 SOURCES task_memory.c ARGS million 16)
bosk_program_test(NAME task_memory_queued SOURCES task_memory.c ARGS queued 64 BOSK_ONLY)
bosk_program_test(NAME task_spins_2 SOURCES task_spins.c ARGS 2)
bosk_program_test(NAME task_spins_4 SOURCES task_spins.c ARGS 4)
foreach(threads 2 3 8 70)
  bosk_program_test(NAME tasks_at_end_${threads} SOURCES tasks_at_end.c ARGS ${threads})
endforeach()
foreach(identity strict relaxed)
  bosk_program_test(NAME tasks_at_end_${identity} SOURCES tasks_at_end.c ARGS 5
                    ENV BOSK_IDENTITY=${identity} BOSK_WORKERS=3)
endforeach()
# Teams larger than the machine, each of whose members has a kernel thread.
foreach(threads 4 64 1000)
  bosk_program_test(NAME tasks_of_bound_${threads} SOURCES tasks_of_bound.c ARGS ${threads} TIMEOUT 30
                    ENV OMP_PROC_BIND=true OMP_NUM_THREADS=4)
  bosk_program_test(NAME tasks_of_bound_${threads}_passive SOURCES tasks_of_bound.c ARGS ${threads} TIMEOUT 30
                    ENV OMP_PROC_BIND=true OMP_NUM_THREADS=4 OMP_WAIT_POLICY=passive)
  bosk_program_test(NAME tasks_of_bound_${threads}_kthread SOURCES tasks_of_bound.c ARGS ${threads} TIMEOUT 30
                    ENV BOSK_IDENTITY=kthread)
  bosk_program_test(NAME tasks_of_bound_${threads}_one_cpu SOURCES tasks_of_bound.c ARGS ${threads} TIMEOUT 30
                    ENV OMP_PROC_BIND=true WRAPPER taskset -c 0)
endforeach()
bosk_program_test(NAME tasks_of_bound_unbound SOURCES tasks_of_bound.c ARGS 64 5)
bosk_program_test(NAME offload_tables SOURCES offload_tables.c BOSK_ONLY MATCH "^bosk: .*run on the host\n$")
bosk_program_test(NAME offload_tables_disabled SOURCES offload_tables.c BOSK_ONLY
                  ENV OMP_TARGET_OFFLOAD=disabled REJECT "bosk:")
bosk_program_test(NAME tasks_at_end_one_cpu SOURCES tasks_at_end.c ARGS 4 WRAPPER taskset -c 0)
foreach(mode at-once endless-spin endless-spin-many endless-sleep endless-nested short-lived detached)
  bosk_program_test(NAME pthreads_${mode} SOURCES regions_by_pthreads.c ARGS ${mode})
endforeach()
bosk_program_test(NAME specific_no_tls SOURCES specific_no_tls.c)
foreach(mode ids signals affinity clocks)
  bosk_program_test(NAME native_${mode} SOURCES native_threads.c ARGS ${mode} 2)
endforeach()
foreach(mode ids signals affinity)
  bosk_program_test(NAME native_${mode}_8 SOURCES native_threads.c ARGS ${mode} 8)
endforeach()
bosk_program_test(NAME float_inherit SOURCES fast_math.c ARGS inherit)
bosk_program_test(NAME float_inherit_fast_math SOURCES fast_math.c ARGS inherit FLAGS -ffast-math LINK -ffast-math)
bosk_program_test(NAME float_private SOURCES fast_math.c ARGS private)
bosk_program_test(NAME float_change SOURCES fast_math.c ARGS change BOSK_ONLY)
bosk_program_test(NAME float_change_fast_math SOURCES fast_math.c ARGS change FLAGS -ffast-math LINK -ffast-math
                  BOSK_ONLY)
bosk_program_test(NAME sigwait SOURCES signals_and_masks.c)
bosk_program_test(NAME fork_before SOURCES fork_programs.c ARGS before)
bosk_program_test(NAME fork_after SOURCES fork_programs.c ARGS after BOSK_ONLY)
bosk_program_test(NAME fork_inside SOURCES fork_programs.c ARGS inside)
bosk_program_test(NAME fork_exits SOURCES fork_programs.c ARGS exits BOSK_ONLY)
bosk_program_test(NAME fork_exits_strict SOURCES fork_programs.c ARGS exits BOSK_ONLY ENV BOSK_IDENTITY=strict)
bosk_program_test(NAME fork_exits_kthread SOURCES fork_programs.c ARGS exits BOSK_ONLY ENV BOSK_IDENTITY=kthread)
bosk_program_test(NAME fork_beside SOURCES fork_programs.c ARGS beside BOSK_ONLY)
# The first call, and a longer one, which reads the machine for the policy.
bosk_program_test(NAME fork_first ARGS 60 5 BOSK_ONLY)
bosk_program_test(NAME fork_first_policy SOURCES fork_first.c ARGS 60 60 BOSK_ONLY ENV BOSK_POLICY=cache)
# That takes the longest where the machine is read with a library of others.
bosk_program_test(NAME fork_first_machine SOURCES fork_first.c ARGS 60 20 BOSK_ONLY ENV "BOSK_SYNTHETIC=node:2 core:2 pu:1")
bosk_program_plugin(NAME plugin_regions SOURCES plugin_regions.c)
bosk_program_test(NAME pthreads_many_pools SOURCES regions_by_pthreads.c ARGS many-pools)
foreach(mode hard refused)
  bosk_program_test(NAME pause_${mode} SOURCES pause.c ARGS ${mode})
endforeach()
foreach(mode refused-others idle-pools busy yielder destructors fork)
  bosk_program_test(NAME pause_${mode} SOURCES pause.c ARGS ${mode} BOSK_ONLY)
endforeach()
foreach(workers 1 3 16)
  foreach(mode hard busy)
    bosk_program_test(NAME pause_${mode}_${workers} SOURCES pause.c ARGS ${mode} ENV BOSK_WORKERS=${workers}
                      BOSK_ONLY)
  endforeach()
endforeach()
bosk_program_test(NAME lent_at_end SOURCES lent_at_end.c BOSK_ONLY
                  ENV BOSK_PREEMPT_PERIOD=300us)
bosk_program_test(NAME pause_busy_quick_ticks SOURCES pause.c ARGS busy BOSK_ONLY
                  ENV BOSK_IDENTITY=strict BOSK_PREEMPT_PERIOD=100us)
bosk_program_test(NAME pause_soft SOURCES pause.c ARGS soft ENV GOMP_SPINCOUNT=infinite BOSK_ONLY)
bosk_program_plugin(NAME plugin_tls SOURCES plugin_tls.c)
bosk_program_plugin(NAME plugin_cxx_globals SOURCES plugin_cxx_globals.c FLAGS -fno-openmp)
bosk_program_test(NAME cxx_runtime_goes SOURCES cxx_runtime_goes.c)
bosk_program_test(NAME plugin_cycle SOURCES plugin_cycle.c)
bosk_program_test(NAME first_nested)
bosk_program_test(NAME masks_beside)
bosk_program_test(NAME sandboxed)
bosk_program_test(NAME plugin_cycle_plain SOURCES plugin_cycle.c FLAGS -fno-openmp -DPLAIN
                  LINK -fno-openmp BOSK_ONLY)
bosk_program_test(NAME dlopen_beside_regions SOURCES dlopen_beside.c ARGS pthread)
bosk_program_test(NAME dlopen_by_members SOURCES dlopen_beside.c ARGS members)
bosk_program_test(NAME exit_inside SOURCES exit_inside.c)
bosk_program_test(NAME big_stack SOURCES big_stack.c ARGS 40 ENV OMP_STACKSIZE=64M)
bosk_program_test(NAME big_stack_fortran SOURCES f_stack.f90 FLAGS -fstack-arrays ENV OMP_STACKSIZE=64M)
bosk_program_test(NAME big_stack_O0 SOURCES big_stack.c ARGS 40 ENV OMP_STACKSIZE=64M FLAGS -O0)
foreach(threads 1 2 8 64)
  bosk_program_test(NAME locks_${threads} SOURCES locks.c ENV OMP_NUM_THREADS=${threads})
endforeach()
bosk_program_test(NAME lock_misuse BOSK_ONLY)

# The same on one CPU: whoever waits must leave it to the others.
foreach(mode ring pipeline nested)
  bosk_program_test(NAME spin_${mode}_one_cpu SOURCES spin_flags.c ARGS ${mode} WRAPPER taskset -c 0)
endforeach()
foreach(mode barrier turns)
  bosk_program_test(NAME posix_${mode}_one_cpu SOURCES posix_sync.c ARGS ${mode} WRAPPER taskset -c 0)
endforeach()
bosk_program_test(NAME pthreads_endless-spin_one_cpu SOURCES regions_by_pthreads.c ARGS endless-spin
                  WRAPPER taskset -c 0)
bosk_program_test(NAME task_spins_2_one_cpu SOURCES task_spins.c ARGS 2 WRAPPER taskset -c 0)
bosk_program_test(NAME threadprivate_level1_8_one_cpu SOURCES threadprivate_level1.c ENV OMP_NUM_THREADS=8
                  WRAPPER taskset -c 0)
bosk_program_test(NAME identity_flat_8_one_cpu SOURCES identity.cpp ARGS flat ENV OMP_NUM_THREADS=8
                  WRAPPER taskset -c 0)
bosk_program_test(NAME sigwait_one_cpu SOURCES signals_and_masks.c WRAPPER taskset -c 0)

# --- Constructs -----------------------------------------------------------------------------------
bosk_program_test(NAME parallel_forms SOURCES parallel_forms.c)
bosk_program_test(NAME parallel_forms_O0 SOURCES parallel_forms.c FLAGS -O0)
bosk_program_test(NAME parallel_forms_passive SOURCES parallel_forms.c ENV OMP_WAIT_POLICY=passive)
bosk_program_test(NAME parallel_forms_active SOURCES parallel_forms.c ENV OMP_WAIT_POLICY=active)
bosk_program_test(NAME nesting SOURCES nesting.c)
bosk_program_test(NAME nesting_passive SOURCES nesting.c ENV OMP_WAIT_POLICY=passive)
foreach(threads 1 2 16)
  bosk_program_test(NAME loops_${threads} SOURCES loops.c ENV OMP_NUM_THREADS=${threads})
endforeach()
# What GCC 12 makes of static chunks adds up signed numbers of its own, near LONG_MAX.
bosk_program_test(NAME loops_O0 SOURCES loops.c FLAGS -O0 -fno-sanitize=signed-integer-overflow)
foreach(threads 1 3 16)
  bosk_program_test(NAME nowait_chains_${threads} SOURCES nowait_chains.c
                    ENV OMP_NUM_THREADS=${threads} OMP_SCHEDULE=guided,2)
endforeach()
foreach(threads 1 2 16)
  bosk_program_test(NAME ordered_${threads} SOURCES ordered.c ENV OMP_NUM_THREADS=${threads})
  bosk_program_test(NAME worksharing_${threads} SOURCES worksharing.c ENV OMP_NUM_THREADS=${threads})
  bosk_program_test(NAME reductions_${threads} SOURCES reductions.c ENV OMP_NUM_THREADS=${threads})
endforeach()
bosk_program_test(NAME ordered_static_schedule SOURCES ordered.c ENV OMP_SCHEDULE=static,3)
bosk_program_test(NAME worksharing_O0 SOURCES worksharing.c FLAGS -O0)
bosk_program_test(NAME reductions_passive SOURCES reductions.c ENV OMP_WAIT_POLICY=passive)
foreach(threads 1 2 16)
  foreach(program tasks taskloops depend detach task_reductions)
    bosk_program_test(NAME ${program}_${threads} SOURCES ${program}.c ENV OMP_NUM_THREADS=${threads})
  endforeach()
  foreach(setting true false)
    bosk_program_test(NAME cancel_${setting}_${threads} SOURCES cancel.c
                      ENV OMP_NUM_THREADS=${threads} OMP_CANCELLATION=${setting})
    bosk_program_test(NAME taskloop_ranges_${setting}_${threads} SOURCES taskloop_ranges.cpp
                      ENV OMP_NUM_THREADS=${threads} OMP_CANCELLATION=${setting})
  endforeach()
endforeach()
# Each CPU a node: thieves look by distance, from the first task on.
foreach(program tasks taskloops depend detach task_reductions)
  foreach(threads 2 16)
    bosk_program_test(NAME ${program}_two_nodes_${threads} SOURCES ${program}.c BOSK_ONLY
                      ENV OMP_NUM_THREADS=${threads} "BOSK_SYNTHETIC=node:2 pu:1" BOSK_POLICY=spread)
  endforeach()
endforeach()
foreach(program tasks depend)
  bosk_program_test(NAME ${program}_O0 SOURCES ${program}.c FLAGS -O0)
  bosk_program_test(NAME ${program}_passive SOURCES ${program}.c ENV OMP_WAIT_POLICY=passive)
endforeach()
bosk_program_test(NAME taskloop_ranges_discards SOURCES taskloop_ranges.cpp ARGS discards BOSK_ONLY
                  ENV OMP_CANCELLATION=true)
bosk_program_test(NAME detach_at_region_end SOURCES detach.c ARGS at-end BOSK_ONLY)
foreach(threads 2 16)
  bosk_program_test(NAME task_objects_${threads} SOURCES task_objects.cpp ENV OMP_NUM_THREADS=${threads})
  bosk_program_test(NAME cpp_mix_${threads} SOURCES cpp_mix.cpp ENV OMP_NUM_THREADS=${threads})
  bosk_program_test(NAME icvs_${threads} SOURCES icvs.c ENV OMP_NUM_THREADS=${threads})
endforeach()
bosk_program_test(NAME icvs_default SOURCES icvs.c)
bosk_program_test(NAME icvs_of_pthreads SOURCES icvs_of_pthreads.c)

# --- Environment ----------------------------------------------------------------------------------
bosk_program_test(NAME env_threads_list SOURCES environment.c ENV OMP_NUM_THREADS=4,3,2
                  ARGS max-threads=4 threads=4,3,2,2)
bosk_program_test(NAME env_threads_5 SOURCES environment.c ENV OMP_NUM_THREADS=5 ARGS threads=5,1 levels=1)
bosk_program_test(NAME env_levels SOURCES environment.c ENV OMP_NUM_THREADS=3 OMP_MAX_ACTIVE_LEVELS=2
                  ARGS threads=3,3,1 levels=2)
bosk_program_test(NAME env_levels_zero SOURCES environment.c ENV OMP_NUM_THREADS=3 OMP_MAX_ACTIVE_LEVELS=0
                  ARGS threads=1,1 levels=0)
bosk_program_test(NAME env_limit SOURCES environment.c
                  ENV OMP_THREAD_LIMIT=6 OMP_NUM_THREADS=4 OMP_MAX_ACTIVE_LEVELS=3 ARGS limit=6)
bosk_program_test(NAME env_schedule_guided SOURCES environment.c ENV OMP_SCHEDULE=guided,4 ARGS schedule=guided,4)
bosk_program_test(NAME env_schedule_static SOURCES environment.c ENV OMP_SCHEDULE=static ARGS schedule=static,0)
bosk_program_test(NAME env_schedule_modifier SOURCES environment.c ENV OMP_SCHEDULE=nonmonotonic:dynamic,7
                  ARGS schedule=dynamic,7)
bosk_program_test(NAME env_others SOURCES environment.c
                  ENV OMP_DYNAMIC=true OMP_MAX_TASK_PRIORITY=9 OMP_CANCELLATION=TRUE OMP_NUM_TEAMS=5
                  ARGS dynamic=1 priority=9 cancellation=1 teams=5)
bosk_program_test(NAME env_bind_list SOURCES environment.c ENV OMP_PROC_BIND=spread,close ARGS bind=4 levels=255)
bosk_program_test(NAME env_bind_false SOURCES environment.c ENV OMP_PROC_BIND=false OMP_PLACES=threads ARGS bind=0)
bosk_program_test(NAME env_bind_places SOURCES environment.c ENV OMP_PLACES=threads ARGS bind=1)
bosk_program_test(NAME places_unbound SOURCES places.c ARGS unbound)
bosk_program_test(NAME places_threads SOURCES places.c ENV OMP_PLACES=threads OMP_PROC_BIND=close)
bosk_program_test(NAME places_cores SOURCES places.c ENV OMP_PLACES=cores OMP_PROC_BIND=spread)
bosk_program_test(NAME places_sockets SOURCES places.c ENV OMP_PLACES=sockets OMP_PROC_BIND=true)
bosk_program_test(NAME places_one SOURCES places.c ENV OMP_PLACES={0} OMP_PROC_BIND=true ARGS 1 1)
bosk_program_test(NAME places_two SOURCES places.c ENV OMP_PLACES={1},{0} OMP_PROC_BIND=true ARGS 2 2)
bosk_program_test(NAME places_interval SOURCES places.c ENV OMP_PLACES={0}:2:1 OMP_PROC_BIND=close ARGS 2 1)
bosk_program_test(NAME places_whole SOURCES places.c ENV OMP_PLACES={0:2} OMP_PROC_BIND=close ARGS 1 3)
bosk_program_test(NAME places_gomp SOURCES places.c ENV GOMP_CPU_AFFINITY=0-1 ARGS 2 1)
bosk_program_test(NAME display_affinity SOURCES display_affinity.c ENV OMP_DISPLAY_AFFINITY=true OMP_AFFINITY_FORMAT=%L:%a:%n/%N=%A ARGS any)
bosk_program_test(NAME display_affinity_strict SOURCES display_affinity.c ENV BOSK_IDENTITY=strict OMP_DISPLAY_AFFINITY=true OMP_AFFINITY_FORMAT=%L:%a:%n/%N=%A ARGS any)
bosk_program_test(NAME display_affinity_places SOURCES display_affinity.c ENV OMP_DISPLAY_AFFINITY=true OMP_AFFINITY_FORMAT=%L:%a:%n/%N=%A OMP_PLACES={1},{0} OMP_PROC_BIND=close ARGS 1 0)

# --- The report's statistics of threads with all that they open
foreach(case counts flat time)
  bosk_program_test(NAME report_entities_${case} SOURCES report_entities.c ARGS ${case} BOSK_ONLY)
endforeach()
bosk_program_test(NAME report_entities_counts_strict SOURCES report_entities.c ARGS counts
                  ENV BOSK_IDENTITY=strict BOSK_ONLY)

# --- Policies -------------------------------------------------------------------------------------
foreach(case burst-stays burst-core burst-crowd burst-all burst-wide spread cache steal explode null gang composed spin
        bad)
  bosk_program_test(NAME policies_${case} SOURCES policies.c ARGS ${case} BOSK_ONLY)
endforeach()
bosk_program_test(NAME policies_burst-stays_strict SOURCES policies.c ARGS burst-stays ENV BOSK_IDENTITY=strict
                  BOSK_ONLY)
bosk_program_test(NAME policies_burst-all_own-stacks SOURCES policies.c ARGS burst-all FLAGS -DOWN_STACKS BOSK_ONLY)
bosk_program_test(NAME policies_burst-all_strict SOURCES policies.c ARGS burst-all ENV BOSK_IDENTITY=strict
                  BOSK_ONLY)
bosk_program_test(NAME policies_burst-stays_passive SOURCES policies.c ARGS burst-stays
                  ENV OMP_WAIT_POLICY=passive BOSK_ONLY)

# --- Hints ----------------------------------------------------------------------------------------
set(hints SOURCES hints.c FLAGS -I${PROJECT_SOURCE_DIR}/include)
bosk_program_test(NAME hints_any ${hints} ARGS any)
bosk_program_test(NAME hints_any_strict ${hints} ARGS any ENV BOSK_IDENTITY=strict BOSK_WORKERS=3)
bosk_program_test(NAME hints_any_kthread ${hints} ARGS any ENV BOSK_IDENTITY=kthread)
bosk_program_test(NAME hints_any_own-stacks SOURCES hints.c FLAGS -I${PROJECT_SOURCE_DIR}/include -DOWN_STACKS
                  ARGS any BOSK_ONLY)
bosk_program_test(NAME hints_errors ${hints} ARGS errors BOSK_ONLY)
foreach(identity relaxed strict)
  bosk_program_test(NAME hints_order_${identity} ${hints} ARGS order BOSK_ONLY
                    ENV BOSK_IDENTITY=${identity} BOSK_WORKERS=1 BOSK_PREEMPT_PERIOD=off)
endforeach()
bosk_program_test(NAME hints_order_own-stacks SOURCES hints.c FLAGS -I${PROJECT_SOURCE_DIR}/include -DOWN_STACKS
                  ARGS order BOSK_ONLY ENV BOSK_WORKERS=1 BOSK_PREEMPT_PERIOD=off)
bosk_program_test(NAME hints_sizes ${hints} ARGS sizes BOSK_ONLY
                  ENV BOSK_LOAD=1:0=1,1=3 BOSK_TEAM_SIZE=load BOSK_WORKERS=8 OMP_NUM_THREADS=2,8)
bosk_program_test(NAME hints_bad ${hints} ARGS any BOSK_ONLY ENV BOSK_LOAD=1:x=1
                  MATCH "^bosk: BOSK_LOAD=1:x=1 is not a list of loads; accepted: .*; using none")
# Gangs and other relations of teams.
set(relations SOURCES team_relations.c FLAGS -I${PROJECT_SOURCE_DIR}/include LINK gomp BOSK_ONLY)
set(four_nodes "BOSK_SYNTHETIC=node:4 core:4 pu:1" BOSK_WORKERS=16)
foreach(what compute barriers flags across locks levels unequal)
  bosk_program_test(NAME relations_${what} ${relations} ARGS ${what} 4 2)
  bosk_program_test(NAME relations_${what}_policy ${relations} ARGS ${what} 3 2 env ENV BOSK_POLICY=gang)
endforeach()
foreach(what barriers across locks levels unequal)
  bosk_program_test(NAME relations_${what}_nodes ${relations} ARGS ${what} 5 7 ENV ${four_nodes})
  bosk_program_test(NAME relations_${what}_own-stacks ${relations} ARGS ${what} 3 2 env
                    ENV BOSK_RELATION=2:gang\;3:gang BOSK_IDENTITY=strict BOSK_PREEMPT_PERIOD=1ms)
endforeach()
bosk_program_test(NAME relations_said ${relations} ARGS said 4 2)
bosk_program_test(NAME relations_said_nodes ${relations} ARGS said 4 6 ENV ${four_nodes})
bosk_program_test(NAME relations_kthread ${relations} ARGS barriers 3 2 ENV BOSK_IDENTITY=kthread)
bosk_program_test(NAME relations_too_large ${relations} ARGS barriers 2 5 ENV BOSK_WORKERS=4
                  MATCH "^bosk: a team of 5 cannot be a gang on 4 workers: its members run when they can")
bosk_program_test(NAME relations_no_ticks ${relations} ARGS barriers 2 2 ENV BOSK_PREEMPT_PERIOD=off
                  MATCH "^bosk: teams cannot be gangs with BOSK_PREEMPT_PERIOD=off: their members run when they can")
bosk_program_test(NAME relations_report ${relations} ARGS barriers 2 2 ENV BOSK_REPORT=-
                  MATCH "^gangs       40 regions by relation or policy")
# By a plug-in.
if(TARGET gangs)
  foreach(what compute barriers flags across levels unequal)
    bosk_program_test(NAME relations_${what}_plugin ${relations} ARGS ${what} 3 2 env
                      ENV "BOSK_POLICY=${PROJECT_BINARY_DIR}/tests/plugins/gangs.so")
  endforeach()
  foreach(what barriers across unequal)
    bosk_program_test(NAME relations_${what}_plugin_nodes ${relations} ARGS ${what} 5 7 env
                      ENV "BOSK_POLICY=${PROJECT_BINARY_DIR}/tests/plugins/gangs_list.so" ${four_nodes})
  endforeach()
  bosk_program_test(NAME relations_report_plugin ${relations} ARGS barriers 2 2 env
                    ENV "BOSK_POLICY=${PROJECT_BINARY_DIR}/tests/plugins/gangs.so" BOSK_REPORT=-
                    MATCH "^gangs       40 regions by relation or policy")
  add_dependencies(programs_team_relations gangs gangs_list)
endif()
bosk_program_test(NAME relations_bad ${relations} ARGS barriers 2 2 ENV BOSK_RELATION=2:friends
                  MATCH "^bosk: BOSK_RELATION=2:friends is not a list of relations; accepted: .*; using none")
bosk_program_test(NAME relations_bad_sequence ${relations} ARGS barriers 2 2 ENV BOSK_RELATION=2:sequence
                  MATCH "^bosk: BOSK_RELATION=2:sequence is not a list of relations; accepted: .*; using none")
bosk_program_test(NAME f_hints LINK gomp BOSK_ONLY ENV BOSK_WORKERS=1 BOSK_PREEMPT_PERIOD=off)
set(hints_memory SOURCES hints_memory.c FLAGS -I${PROJECT_SOURCE_DIR}/include)
bosk_program_test(NAME hints_memory_any ${hints_memory} ARGS any)
bosk_program_test(NAME hints_memory_any_kthread ${hints_memory} ARGS any ENV BOSK_IDENTITY=kthread)
bosk_program_test(NAME hints_memory_any_4nodes ${hints_memory} ARGS any BOSK_ONLY
                  ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1" BOSK_WORKERS=8 BOSK_NEXT_TOUCH=regions)
foreach(what books errors fork handler)
  bosk_program_test(NAME hints_memory_${what} ${hints_memory} ARGS ${what} BOSK_ONLY
                    ENV "BOSK_SYNTHETIC=core:4 pu:1")
endforeach()
foreach(members 2 3 4 8 16)
  bosk_program_test(NAME hints_memory_pass_on_${members} ${hints_memory} ARGS pass_on ${members} BOSK_ONLY
                    ENV "BOSK_SYNTHETIC=core:4 pu:1")
endforeach()
bosk_program_test(NAME f_hints_memory LINK gomp bosk_fortran BOSK_ONLY ENV "BOSK_SYNTHETIC=core:4 pu:1")
bosk_program_test(NAME hints_memory_bad ${hints_memory} ARGS any BOSK_ONLY ENV BOSK_NEXT_TOUCH=often
                  MATCH "^bosk: BOSK_NEXT_TOUCH=often is not a time to mark memory; accepted: off, regions; using off")

foreach(mode pair nested crossed)
  foreach(policy burst:core spread)
    bosk_program_test(NAME spin_${mode}_${policy} SOURCES spin_flags.c ARGS ${mode}
                      ENV BOSK_POLICY=${policy} BOSK_WORKERS=4)
  endforeach()
endforeach()

# --- Scale ----------------------------------------------------------------------------------------
bosk_program_test(NAME scale_barrier_small SOURCES scale_barrier.c ARGS 8 8 5)
bosk_program_test(NAME scale_barrier_4096 SOURCES scale_barrier.c ARGS 64 64 5 BOSK_ONLY)
bosk_program_test(NAME scale_ghosts_small SOURCES scale_ghosts.c ARGS 20000)
bosk_program_test(NAME scale_ghosts_million SOURCES scale_ghosts.c ARGS 1000000 65536 BOSK_ONLY)
bosk_program_test(NAME team_sizes SOURCES team_sizes.c ARGS 100)
bosk_program_test(NAME team_sizes_many SOURCES team_sizes.c ARGS 20000 BOSK_ONLY)
bosk_program_test(NAME recursive_regions SOURCES recursive_regions.c ARGS 10 2)
bosk_program_test(NAME recursive_regions_deep SOURCES recursive_regions.c ARGS 22 3 BOSK_ONLY)

# --- Devices: the host stands in for them -----------------------------------------------------------
foreach(mode data context teams nested at-once clauses older)
  bosk_program_test(NAME target_${mode} SOURCES target_regions.c ARGS ${mode})
endforeach()
bosk_program_test(NAME target_limit SOURCES target_regions.c ARGS limit ENV OMP_THREAD_LIMIT=4)
bosk_program_test(NAME target_data_O0 SOURCES target_regions.c ARGS data FLAGS -O0)
bosk_program_test(NAME target_places SOURCES target_regions.c ARGS nested ENV OMP_PLACES=threads OMP_PROC_BIND=spread,close)
foreach(cause IDENTITY=kthread IDENTITY=strict WORKERS=1 WORKERS=5 PREEMPT_PERIOD=100us)
  string(REGEX REPLACE "[^A-Za-z0-9]" "_" word ${cause})
  bosk_program_test(NAME target_nested_${word} SOURCES target_regions.c ARGS nested ENV BOSK_${cause})
  bosk_program_test(NAME target_at_once_${word} SOURCES target_regions.c ARGS at-once ENV BOSK_${cause})
  bosk_program_test(NAME target_tasks_${word} SOURCES target_tasks.c ARGS all ENV BOSK_${cause})
endforeach()
bosk_program_test(NAME target_tasks SOURCES target_tasks.c ARGS all)
bosk_program_test(NAME target_tasks_at_barrier SOURCES target_tasks.c ARGS barrier)
bosk_program_test(NAME target_objects)
bosk_program_test(NAME f_target)
# GCC 12 knows neither the names nor that there has to be a device.
foreach(mode copies interop uid allocators pause)
  bosk_program_test(NAME target_newer_${mode} SOURCES target_newer.c ARGS ${mode} BOSK_ONLY)
endforeach()
if(CMAKE_Fortran_COMPILER)
  bosk_program_plugin(NAME f_target_newer)
  bosk_program_test(NAME target_newer_fortran SOURCES target_newer.c ARGS fortran BOSK_ONLY)
endif()
foreach(what target data update enter nowait alloc present memcpy associate if)
  bosk_program_test(NAME target_offload_${what} SOURCES target_offload.c ARGS ${what} 5 MATCH "^went on$")
  if(NOT what STREQUAL if)
    bosk_program_test(NAME target_mandatory_${what} SOURCES target_offload.c ARGS ${what} 5
                      ENV OMP_TARGET_OFFLOAD=mandatory EXIT 1 REJECT "went on"
                      MATCH "^libgomp: OMP_TARGET_OFFLOAD is set to MANDATORY, but device not found$")
  endif()
  bosk_program_test(NAME target_disabled_${what} SOURCES target_offload.c ARGS ${what} 5
                    ENV OMP_TARGET_OFFLOAD=disabled MATCH "^went on$")
endforeach()
bosk_program_test(NAME target_mandatory_if SOURCES target_offload.c ARGS if 5
                  ENV OMP_TARGET_OFFLOAD=mandatory MATCH "^went on$")
bosk_program_test(NAME target_mandatory_host SOURCES target_offload.c ARGS target 0
                  ENV OMP_TARGET_OFFLOAD=mandatory MATCH "^went on$")
bosk_program_test(NAME target_mandatory_set SOURCES target_offload.c ARGS set
                  ENV OMP_TARGET_OFFLOAD=mandatory MATCH "^went on$")
bosk_program_test(NAME target_mandatory_default SOURCES target_offload.c ARGS target BOSK_ONLY
                  ENV OMP_TARGET_OFFLOAD=mandatory EXIT 1 REJECT "went on"
                  MATCH "^libgomp: OMP_TARGET_OFFLOAD is set to MANDATORY, but only the host device is available$")
foreach(what target nowait data alloc present memcpy)
  bosk_program_test(NAME target_invalid_${what} SOURCES target_offload.c ARGS ${what} -4 BOSK_ONLY
                    EXIT 1 REJECT "went on" MATCH "^libgomp: omp_invalid_device encountered$")
endforeach()
bosk_program_test(NAME target_tasks_cancel SOURCES target_tasks.c ARGS cancel ENV OMP_CANCELLATION=true)

# --- Fortran --------------------------------------------------------------------------------------
foreach(mode set unset test)
  bosk_program_test(NAME f_lock_misuse_${mode} SOURCES f_lock_misuse.f90 ARGS ${mode} BOSK_ONLY EXIT 1
                    MATCH "^libgomp: omp_${mode}_nest_lock: no initialised lock$")
endforeach()
bosk_program_test(NAME f_lock_misuse ARGS none BOSK_ONLY)
foreach(threads 2 16)
  bosk_program_test(NAME f_worksharing_${threads} SOURCES f_worksharing.f90 ENV OMP_NUM_THREADS=${threads})
  bosk_program_test(NAME f_runtime_${threads} SOURCES f_runtime.f90 ENV OMP_NUM_THREADS=${threads})
endforeach()
bosk_program_test(NAME f_worksharing_O0 SOURCES f_worksharing.f90 FLAGS -O0)
bosk_program_test(NAME f_int8 SOURCES f_int8.f90 FLAGS -fdefault-integer-8)

# --- One kernel thread per OpenMP thread: asked for, or because identities cannot be had ------------
# Without preemption a thread that spins leaves its CPU only to the kernel's scheduler.
foreach(cause IDENTITY=kthread SELFTEST=fail-identity)
  string(REGEX REPLACE ".*=" "" word ${cause})
  foreach(mode pair pipeline nested)
    bosk_program_test(NAME ${word}_spin_${mode} SOURCES spin_flags.c ARGS ${mode} ENV BOSK_${cause})
  endforeach()
  foreach(mode nested-barrier queue pipes)
    bosk_program_test(NAME ${word}_posix_${mode} SOURCES posix_sync.c ARGS ${mode} ENV BOSK_${cause})
  endforeach()
  foreach(mode at-once endless-nested short-lived)
    bosk_program_test(NAME ${word}_pthreads_${mode} SOURCES regions_by_pthreads.c ARGS ${mode} ENV BOSK_${cause})
  endforeach()
  foreach(mode hard idle-pools busy destructors fork)
    bosk_program_test(NAME ${word}_pause_${mode} SOURCES pause.c ARGS ${mode} ENV BOSK_${cause} BOSK_ONLY)
  endforeach()
  foreach(mode before after inside beside)
    bosk_program_test(NAME ${word}_fork_${mode} SOURCES fork_programs.c ARGS ${mode} ENV BOSK_${cause} BOSK_ONLY)
  endforeach()
  foreach(program nesting threadprivate_nested exit_inside parallel_forms)
    bosk_program_test(NAME ${word}_${program} SOURCES ${program}.c ENV BOSK_${cause})
  endforeach()
  foreach(program locks ordered reductions tasks taskloops depend detach)
    bosk_program_test(NAME ${word}_${program} SOURCES ${program}.c ENV OMP_NUM_THREADS=16 BOSK_${cause})
  endforeach()
  bosk_program_test(NAME ${word}_cancel SOURCES cancel.c ENV OMP_NUM_THREADS=16 OMP_CANCELLATION=true BOSK_${cause})
  bosk_program_test(NAME ${word}_task_spins SOURCES task_spins.c ARGS 2 ENV BOSK_${cause})
  bosk_program_test(NAME ${word}_task_spins_3 SOURCES task_spins.c ARGS 3 ENV BOSK_${cause})
  bosk_program_test(NAME ${word}_identity SOURCES identity.cpp ARGS nested ENV BOSK_${cause})
  bosk_program_test(NAME ${word}_scale_barrier SOURCES scale_barrier.c ARGS 16 16 5 ENV BOSK_${cause})
  bosk_program_test(NAME ${word}_limit SOURCES environment.c ARGS limit=6
                    ENV OMP_THREAD_LIMIT=6 OMP_NUM_THREADS=4 OMP_MAX_ACTIVE_LEVELS=3 BOSK_${cause})
  bosk_program_test(NAME ${word}_places SOURCES places.c ENV OMP_PLACES=threads OMP_PROC_BIND=spread BOSK_${cause})
  foreach(mode first flat nested at-once)
    bosk_program_test(NAME ${word}_refused_${mode} SOURCES thread_refused.c ARGS ${mode} ENV BOSK_${cause} BOSK_ONLY
                      EXIT 1 MATCH "^libgomp: Thread creation failed: Resource temporarily unavailable$"
                      REJECT "went on|smaller team|share them")
  endforeach()
endforeach()
bosk_program_test(NAME fallback_line_once SOURCES fallback_line.c ARGS nested 1 ENV BOSK_SELFTEST=fail-identity BOSK_ONLY)
bosk_program_test(NAME fallback_line_never_asked SOURCES fallback_line.c ARGS flat 0 ENV BOSK_SELFTEST=fail-identity)
bosk_program_test(NAME fallback_line_silent SOURCES fallback_line.c ARGS nested 0 ENV BOSK_IDENTITY=kthread)
bosk_program_test(NAME fallback_line_not_needed SOURCES fallback_line.c ARGS nested 0)
bosk_program_test(NAME refused_from_the_start SOURCES thread_refused.c ARGS first BOSK_ONLY
                  EXIT 1 MATCH "^libgomp: Thread creation failed: Resource temporarily unavailable$"
                  "^bosk: cannot give .*Resource temporarily unavailable.*one kernel thread per OpenMP thread$")

# valgrind hides FSGSBASE.
find_program(valgrind valgrind)
if(valgrind)
  bosk_program_test(NAME valgrind_nesting SOURCES nesting.c WRAPPER ${valgrind} --error-exitcode=9 BOSK_ONLY
                    MATCH "one kernel thread per OpenMP thread" "ERROR SUMMARY: 0 errors" TIMEOUT 120)
  bosk_program_test(NAME valgrind_leaks SOURCES icvs_of_pthreads.c BOSK_ONLY TIMEOUT 120
                    WRAPPER ${valgrind} --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite
                            "--suppressions=${CMAKE_CURRENT_LIST_DIR}/valgrind.supp"
                    MATCH "one kernel thread per OpenMP thread" "definitely lost: 0 bytes")
endif()

# --- Built by their users with AddressSanitizer ---------------------------------------------------
# Frames that have returned are kept apart, too: that notices a stack that the sanitizer takes for another's.
set(by_user SOURCES sanitized.cpp FLAGS -fsanitize=address LINK -fsanitize=address
            ENV ASAN_OPTIONS=detect_stack_use_after_return=1:exitcode=23)
foreach(mode frames exceptions tasks threads fork)
  bosk_program_test(NAME asan_user_${mode} ARGS ${mode} ${by_user}
                    REJECT "ERROR: |WARNING: ASan|Tracer caught")
endforeach()
# Its own mistakes are found all the same.
bosk_program_test(NAME asan_user_overflow ARGS overflow ${by_user}
                  EXIT 23 MATCH "AddressSanitizer: stack-buffer-overflow")
bosk_program_test(NAME asan_user_returned ARGS returned ${by_user}
                  EXIT 23 MATCH "AddressSanitizer: stack-use-after-return")
bosk_program_test(NAME asan_user_leak ARGS leak ${by_user}
                  EXIT 23 MATCH "LeakSanitizer: detected memory leaks")

# With ThreadSanitizer. It does not see the order that a runtime makes which was built without it, whichever
# that is, so its reports are off; but members that wait in the kernel for one another must get on.
if(BOSK_CAN_RUN_TSAN)
  foreach(mode barrier nested-barrier queue)
    bosk_program_test(NAME tsan_user_posix_${mode} SOURCES posix_sync.c ARGS ${mode} FLAGS -fsanitize=thread
                      LINK -fsanitize=thread ENV TSAN_OPTIONS=report_bugs=0 BOSK_ONLY)
  endforeach()
  bosk_program_test(NAME tsan_user_nesting SOURCES nesting.c FLAGS -fsanitize=thread LINK -fsanitize=thread
                    ENV TSAN_OPTIONS=report_bugs=0 BOSK_ONLY MATCH "ThreadSanitizer holds back the signals")
endif()

# --- User and group numbers (root only) -----------------------------------------------------------
bosk_program_test(NAME setxid_every SOURCES setxid.c ARGS every ENV BOSK_PREEMPT_PERIOD=off SKIP 77 BOSK_ONLY)
bosk_program_test(NAME setxid_end SOURCES setxid.c ARGS end SKIP 77 BOSK_ONLY)
bosk_program_test(NAME setxid_end_quick_ticks SOURCES setxid.c ARGS end ENV BOSK_PREEMPT_PERIOD=500us SKIP 77 BOSK_ONLY)
bosk_program_test(NAME setxid_kthread SOURCES setxid.c ARGS every ENV BOSK_IDENTITY=kthread SKIP 77 BOSK_ONLY)

# --- Life in real processes -----------------------------------------------------------------------
bosk_program_test(NAME main_leaves)
bosk_program_test(NAME main_leaves_kthread SOURCES main_leaves.c ENV BOSK_IDENTITY=kthread)
foreach(mode inside outside stop)
  bosk_program_test(NAME process_ends_${mode} SOURCES process_ends.c ARGS ${mode})
  bosk_program_test(NAME process_ends_${mode}_kthread SOURCES process_ends.c ARGS ${mode} ENV BOSK_IDENTITY=kthread)
endforeach()
foreach(members 2 6)
  foreach(mode exec spawn fork)
    bosk_program_test(NAME process_children_${mode}_${members} SOURCES process_children.c ARGS ${mode} ${members})
  endforeach()
endforeach()
foreach(members 2 8)
  foreach(mode altstack profile storm)
    bosk_program_test(NAME signal_stacks_${mode}_${members} SOURCES signal_stacks.c ARGS ${mode} ${members})
  endforeach()
endforeach()
bosk_program_test(NAME process_limits_processes SOURCES process_limits.c ARGS processes SKIP 77)
bosk_program_test(NAME process_limits_quota SOURCES process_limits.c ARGS quota SKIP 77)
foreach(mode address-space one-cpu pinned-thread no-descriptors)
  bosk_program_test(NAME process_limits_${mode} SOURCES process_limits.c ARGS ${mode})
endforeach()
bosk_program_test(NAME tiny_stacks ENV OMP_STACKSIZE=16k)
bosk_program_test(NAME tiny_stacks_kthread SOURCES tiny_stacks.c ENV OMP_STACKSIZE=16k BOSK_IDENTITY=kthread)
bosk_program_test(NAME tiny_stacks_native SOURCES tiny_stacks.c FLAGS -DNATIVE ENV OMP_STACKSIZE=16k)
bosk_program_test(NAME cancel_pthread)
bosk_program_test(NAME static_objects EXIT 7 MATCH "^all ended$")
bosk_program_test(NAME locales)
bosk_program_test(NAME locales_kthread SOURCES locales.c ENV BOSK_IDENTITY=kthread)
bosk_program_plugin(NAME plugin_inner SOURCES plugin_inner.c)
bosk_program_plugin(NAME plugin_static_tls SOURCES plugin_static_tls.c FLAGS -DTAKEN=1400)
foreach(mode together deepbind thread static-tls)
  bosk_program_test(NAME plugins_${mode} SOURCES plugins_together.c ARGS ${mode})
  bosk_program_test(NAME plugins_${mode}_plain SOURCES plugins_together.c ARGS ${mode} FLAGS -fno-openmp -DPLAIN
                    LINK -fno-openmp)
endforeach()
# As malloc of the whole process, where Debian's libjemalloc2 is installed.
find_library(jemalloc NAMES libjemalloc.so.2)
if(jemalloc)
  foreach(program cpp_mix task_objects)
    bosk_program_test(NAME jemalloc_${program} SOURCES ${program}.cpp ENV OMP_NUM_THREADS=16 LD_PRELOAD=${jemalloc})
  endforeach()
  foreach(program nesting tasks)
    bosk_program_test(NAME jemalloc_${program} SOURCES ${program}.c ENV OMP_NUM_THREADS=16 LD_PRELOAD=${jemalloc} BOSK_ONLY)
  endforeach()
  bosk_program_test(NAME jemalloc_fork SOURCES fork_programs.c ARGS after ENV LD_PRELOAD=${jemalloc} BOSK_ONLY)
endif()

# --- Preemption at every instruction (x86-64: the trap flag) --------------------------------------
cmake_host_system_information(RESULT platform QUERY OS_PLATFORM)
if(platform STREQUAL "x86_64")
  # The report says how many of the ticks ended a time slice; most find the library and return.
  set(step SOURCES single_step.c LABELS stress MATCH "[1-9][0-9]* time slices ended")
  foreach(workers 1 2 3)
    foreach(identity strict relaxed)
      bosk_program_test(NAME single_step_${workers}_${identity} ARGS 3 3 3 ${step}
                        ENV BOSK_REPORT=- BOSK_WORKERS=${workers} BOSK_IDENTITY=${identity})
    endforeach()
  endforeach()
  bosk_program_test(NAME single_step_wide ARGS 3 2 12 7 ${step} ENV BOSK_REPORT=- BOSK_WORKERS=2)
  bosk_program_test(NAME single_step_nested ARGS 3 6 2 13 ${step}
                    ENV BOSK_REPORT=- BOSK_WORKERS=2 OMP_WAIT_POLICY=passive)
endif()

# --- Other subjects, each with a manifest of its own ----------------------------------------------
include("${CMAKE_CURRENT_LIST_DIR}/manifest_openacc.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/manifest_homes.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/manifest_threads.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/manifest_sync.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/manifest_memory.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/manifest_memory_costs.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/manifest_openers.cmake")
