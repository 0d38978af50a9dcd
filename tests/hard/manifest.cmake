# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Programs as strangers write them, each right on libgomp, that a runtime with threads of its own making breaks easily: tests
# hard.NAME. CI runs this choice; matrix.py runs each with 1 to 64 threads, both wait policies, bound and not, on one CPU, under
# load and in a quota: ./dev test --long. No test here looks at what bosk makes of it, but at what OpenMP and POSIX promise.
#
# The label `fixed`: the number of threads is an argument, so matrix.py does not vary it.

function(bosk_hard_test)
  set(several SOURCES ARGS ENV WRAPPER LINK FLAGS MATCH REJECT LABELS)
  cmake_parse_arguments(arg "" "NAME;TIMEOUT;SKIP" "${several}" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 30)
  endif()
  set(rest)
  foreach(key SKIP SOURCES ARGS WRAPPER LINK FLAGS MATCH REJECT LABELS)
    if(DEFINED arg_${key})
      list(APPEND rest ${key} ${arg_${key}})
    endif()
  endforeach()
  # A stranger's environment: how many threads, and nothing of ours.
  bosk_program_test(NAME ${arg_NAME} KIND hard TIMEOUT ${arg_TIMEOUT}
                    ENV OMP_NUM_THREADS=8 ${arg_ENV} ${rest} ${arg_UNPARSED_ARGUMENTS})
endfunction()

# What a process cannot do to itself without showing it in its imports.
add_executable(hard_launch "${CMAKE_CURRENT_LIST_DIR}/launch.c")
set_target_properties(hard_launch PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${BOSK_PROGRAMS_DIR}"
                                             OUTPUT_NAME launch)
add_dependencies(bosk_tests hard_launch)
set(launch "${BOSK_PROGRAMS_DIR}/launch")

# --- Tied tasks ------------------------------------------------------------------------------------
foreach(mode reduction array_reduction scratch mutex recursive errorcheck omp_lock
             omp_nest_lock earlier earlier_barrier earlier_nested creator_spins)
  bosk_hard_test(NAME tied_${mode} SOURCES tied_tasks.c ARGS ${mode})
endforeach()
bosk_hard_test(NAME tied_threadprivate SOURCES tied_tasks.c ARGS threadprivate FLAGS -DWITH_THREADPRIVATE)
foreach(type RECURSIVE ERRORCHECK)
  string(TOLOWER ${type} name)
  bosk_hard_test(NAME tied_attribute_${name} SOURCES tied_tasks.c ARGS mutex
                 FLAGS -DMUTEX_TYPE=PTHREAD_MUTEX_${type})
endforeach()
foreach(members 64 200)
  bosk_hard_test(NAME tied_earlier_${members} SOURCES tied_tasks.c ARGS earlier ${members} LABELS fixed)
  bosk_hard_test(NAME tied_earlier_barrier_${members} SOURCES tied_tasks.c
                 ARGS earlier_barrier ${members} LABELS fixed)
endforeach()
bosk_hard_test(NAME tied_reduction_2 SOURCES tied_tasks.c ARGS reduction 2 LABELS fixed)

# --- Preemption that programs cannot see -----------------------------------------------------------
foreach(mode plain nested masked masked_nested all all_nested own own_late own_ignored sigwait by_33 limit_first limit_later)
  bosk_hard_test(NAME handover_${mode} SOURCES handover.c ARGS ${mode})
endforeach()
foreach(mode masked_nested all_nested own own_late)
  bosk_hard_test(NAME handover_kill_${mode} SOURCES handover.c ARGS ${mode} FLAGS -DTHREAD_DIRECTED)
endforeach()
foreach(mode plain nested masked)
  bosk_hard_test(NAME handover_blocked_${mode} SOURCES handover.c ARGS ${mode}
                 WRAPPER ${launch} blocked --)
  foreach(limit 0 1 5)
    bosk_hard_test(NAME handover_sigpending_${limit}_${mode} SOURCES handover.c ARGS ${mode}
                   WRAPPER ${launch} sigpending ${limit} --)
  endforeach()
endforeach()

bosk_hard_test(NAME page_start SOURCES page_start.c)
foreach(mode flat nested)
  foreach(question clock rusage)
    bosk_hard_test(NAME cpu_times_${mode}_${question} SOURCES cpu_times.c ARGS ${mode} ${question})
  endforeach()
endforeach()
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  foreach(mode flat nested)
    bosk_hard_test(NAME gs_base_${mode} SOURCES gs_base.c ARGS ${mode})
  endforeach()
endif()

# --- Libraries that call by number -----------------------------------------------------------------
foreach(way numbers names)
  add_library(hard_${way} SHARED "${CMAKE_CURRENT_LIST_DIR}/${way}_library.c")
  # Not beside our own library, which a run on libgomp would find there.
  set_target_properties(hard_${way} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${BOSK_PROGRAMS_DIR}/libraries")
  foreach(mode tids affinity settings handlers calls forks)
    bosk_hard_test(NAME ${way}_${mode} SOURCES numbers.c ARGS ${mode} LINK hard_${way})
  endforeach()
endforeach()

# --- Members that poll for each other --------------------------------------------------------------
foreach(mode stages short across beside blocked phases behind)
  bosk_hard_test(NAME flags_${mode} SOURCES flags.c ARGS ${mode})
endforeach()
# Where teams have homes, and other nodes may take them; members come out of the kernel at any time.
set(placed ENV "BOSK_SYNTHETIC=node:4 core:4 pu:1" BOSK_WORKERS=16)
bosk_hard_test(NAME flags_across_placed SOURCES flags.c ARGS across ${placed})
bosk_hard_test(NAME flags_blocked_placed SOURCES flags.c ARGS blocked 8 ${placed})

# --- Threads of the program's own that poll outside of regions --------------------------------------
foreach(mode lock calls ends phases)
  bosk_hard_test(NAME outside_${mode} SOURCES outside.c ARGS ${mode})
endforeach()
bosk_hard_test(NAME outside_signals SOURCES outside.c ARGS signals FLAGS -DWITH_KILL)

# --- Who is in the kernel is not interrupted -------------------------------------------------------
foreach(call sleep usleep nanosleep clock_nanosleep clock_nanosleep_until poll ppoll select pselect epoll_wait
             epoll_pwait sigtimedwait semtimedop recv_timeout sem_timedwait sem_clockwait cond_timedwait mutex_timedlock
             mq_timedreceive retry recv_all read write writev sendmsg sendfile getrandom read_zeros accept flock sigsuspend pause)
  foreach(shape flat nested)
    bosk_hard_test(NAME calls_${call}_${shape} SOURCES calls.c ARGS ${call} ${shape})
  endforeach()
endforeach()
foreach(call futex futex_until clock_nanosleep)
  foreach(shape flat nested handing handing_nested)
    bosk_hard_test(NAME calls_by_number_${call}_${shape} SOURCES calls_by_number.c ARGS ${call} ${shape})
  endforeach()
endforeach()
# Members that poll for each other have short slices, and then call.
foreach(call nanosleep poll pselect sem_clockwait read write accept)
  bosk_hard_test(NAME calls_${call}_handing_nested SOURCES calls.c ARGS ${call} handing_nested)
endforeach()
# The report sends ticks to members that have none otherwise.
foreach(call poll pselect clock_nanosleep sem_timedwait recv_all read write read_zeros accept pause)
  foreach(shape flat handing_nested)
    bosk_hard_test(NAME report_${call}_${shape} BOSK_ONLY SOURCES calls.c ARGS ${call} ${shape}
                   WRAPPER $<TARGET_FILE:bosk> run --report -)
  endforeach()
endforeach()
foreach(mode read poll semaphore condition)
  bosk_hard_test(NAME crossed_${mode} SOURCES crossed_waits.c ARGS ${mode})
endforeach()

# --- Handlers --------------------------------------------------------------------------------------
foreach(mode main member nested before)
  bosk_hard_test(NAME jumps_${mode} SOURCES jumps.c ARGS ${mode})
endforeach()
foreach(mode flat nested)
  bosk_hard_test(NAME own_stacks_${mode} SOURCES own_stacks.c ARGS ${mode})
  bosk_hard_test(NAME masks_${mode} SOURCES masks.c ARGS ${mode})
  bosk_hard_test(NAME masks_kill_${mode} SOURCES masks.c ARGS ${mode} FLAGS -DTHREAD_DIRECTED)
endforeach()

# --- Foreign stacks --------------------------------------------------------------------------------
foreach(mode main member member_early thread thread_early barrier limit limit_nested)
  bosk_hard_test(NAME foreign_stacks_${mode} SOURCES foreign_stacks.c ARGS ${mode})
endforeach()

# --- What the opener had stays its own -------------------------------------------------------------
foreach(shape flat nested)
  foreach(mode errno flags x87 strings dlerror members)
    bosk_hard_test(NAME opener_${mode}_${shape} SOURCES opener.c ARGS ${mode} ${shape})
  endforeach()
  foreach(mode mutex file checks held)
    bosk_hard_test(NAME owners_${mode}_${shape} SOURCES owners.cpp ARGS ${mode} ${shape})
  endforeach()
endforeach()
foreach(mode flat nested barrier)
  bosk_hard_test(NAME unwinding_${mode} SOURCES unwinding.cpp ARGS ${mode})
endforeach()

# --- Signals and kernel mutexes of nested members --------------------------------------------------
foreach(mode flat nested waiting waiting_nested)
  bosk_hard_test(NAME collector_${mode} SOURCES collector.c ARGS ${mode})
endforeach()
foreach(shape flat nested)
  foreach(mode inherit robust inherit_checks)
    bosk_hard_test(NAME kernel_mutexes_${mode}_${shape} SOURCES kernel_mutexes.c ARGS ${mode} ${shape})
  endforeach()
endforeach()
foreach(mode flat nested alarm alarm_nested)
  bosk_hard_test(NAME raised_${mode} SOURCES raised.c ARGS ${mode})
endforeach()

# --- Bound teams larger than the machine -----------------------------------------------------------
set(bound SOURCES bound_tasks.c ENV OMP_PROC_BIND=true OMP_NUM_THREADS=4 LABELS fixed)
bosk_hard_test(NAME bound_few_64 ${bound} ARGS 64 4 20)
bosk_hard_test(NAME bound_few_1000 ${bound} ARGS 1000 4 5)
bosk_hard_test(NAME bound_many_64 ${bound} ARGS 64 64 10)
bosk_hard_test(NAME bound_many_1000 ${bound} ARGS 1000 1000 1)

# --- What the machine refuses: it runs, with one line at most --------------------------------------
set(one_line "${CMAKE_CURRENT_LIST_DIR}/lines.sh" 1 "${launch}")
foreach(mode plain nested)
  bosk_hard_test(NAME refused_closed_${mode} SOURCES handover.c ARGS ${mode} WRAPPER ${one_line} closed --)
  bosk_hard_test(NAME refused_noproc_${mode} SOURCES handover.c ARGS ${mode} SKIP 77
                 WRAPPER ${one_line} noproc --)
  foreach(calls timer_create timer_create,timer_settime,setitimer kill,tgkill,tkill,rt_tgsigqueueinfo membarrier)
    string(REGEX REPLACE ",.*" "" name ${calls})
    if(calls MATCHES setitimer)
      set(name timers)
    endif()
    bosk_hard_test(NAME refused_${name}_${mode} SOURCES handover.c ARGS ${mode} SKIP 77
                   WRAPPER ${one_line} forbid ${calls} --)
  endforeach()
endforeach()
# The main thread and the deadline's process are two of them.
bosk_hard_test(NAME refused_threads SOURCES handover.c ARGS plain SKIP 77 WRAPPER ${one_line} nproc 3 --)
foreach(call poll recv_all write)
  bosk_hard_test(NAME refused_noproc_${call} SOURCES calls.c ARGS ${call} nested SKIP 77
                 WRAPPER ${one_line} noproc --)
  bosk_hard_test(NAME refused_timers_${call} SOURCES calls.c ARGS ${call} nested SKIP 77
                 WRAPPER ${one_line} forbid timer_create,timer_settime,setitimer --)
  bosk_hard_test(NAME sigpending_${call} SOURCES calls.c ARGS ${call} nested
                 WRAPPER ${one_line} sigpending 0 --)
endforeach()
bosk_hard_test(NAME refused_closed_tasks SOURCES tied_tasks.c ARGS earlier_barrier
               WRAPPER ${one_line} closed --)
# Exactly one line says that it runs on the host.
bosk_hard_test(NAME device_code SOURCES device_code.c MATCH "^bosk: .*host"
               WRAPPER "${CMAKE_CURRENT_LIST_DIR}/lines.sh" 1)

# --- Libraries that are loaded late ----------------------------------------------------------------
# The program has no OpenMP, and libc's names come first; calls of the first one are looked up when they are made.
foreach(program yields numbers)
  add_library(hard_late_${program} MODULE "${CMAKE_CURRENT_LIST_DIR}/${program}.c")
  set_target_properties(hard_late_${program} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${BOSK_PROGRAMS_DIR}/libraries")
  target_compile_definitions(hard_late_${program} PRIVATE main=late_main)
  target_compile_options(hard_late_${program} PRIVATE -fopenmp)
  target_link_options(hard_late_${program} PRIVATE -fopenmp)
  add_dependencies(bosk_tests hard_late_${program})
endforeach()
target_link_options(hard_late_yields PRIVATE -Wl,-z,lazy)
target_link_options(hard_late_numbers PRIVATE -Wl,-z,now,-z,relro)
target_link_libraries(hard_late_numbers PRIVATE hard_names)
function(bosk_late_test name library)
  bosk_hard_test(NAME late_${name} SOURCES late.c LINK -Wl,--as-needed m ARGS $<TARGET_FILE:hard_late_${library}> ${ARGN})
endfunction()
foreach(mode ring chain others)
  bosk_late_test(yields_${mode} yields ${mode})
  bosk_late_test(yields_${mode}_alone yields ${mode} ENV BOSK_PREEMPT_PERIOD=off)
endforeach()
# Members of inner teams share kernel threads also where those of outer ones do not.
bosk_late_test(yields_inner_alone yields inner ENV BOSK_PREEMPT_PERIOD=off)
bosk_late_test(yields_inner_timer_alone yields inner FLAGS -DWITH_TIMER ENV BOSK_PREEMPT_PERIOD=off)
bosk_late_test(sleeps_ring_alone yields ring usleep ENV BOSK_PREEMPT_PERIOD=off)
foreach(mode tids affinity settings forks)
  bosk_late_test(names_${mode} numbers ${mode})
endforeach()

# --- Waiting by sched_yield() ----------------------------------------------------------------------
foreach(mode ring stages all inner chain unequal tasks handler foreign child vfork others)
  bosk_hard_test(NAME yields_${mode} SOURCES yields.c ARGS ${mode})
endforeach()
bosk_hard_test(NAME yields_alternate SOURCES yields.c ARGS alternate FLAGS -DWITH_ALTERNATE_STACK)
# With nobody to interrupt them: a yield alone must begin members and let each go on.
foreach(mode ring stages all inner chain unequal others)
  bosk_hard_test(NAME yields_${mode}_alone SOURCES yields.c ARGS ${mode} ENV BOSK_PREEMPT_PERIOD=off)
endforeach()

# The same by short sleeps.
foreach(mode ring all unequal tasks handler foreign child vfork)
  bosk_hard_test(NAME sleeps_${mode} SOURCES yields.c ARGS ${mode} usleep)
endforeach()
bosk_hard_test(NAME sleeps_alternate SOURCES yields.c ARGS alternate usleep FLAGS -DWITH_ALTERNATE_STACK)
bosk_hard_test(NAME sleeps_stages SOURCES yields.c ARGS stages nanosleep)
bosk_hard_test(NAME sleeps_others SOURCES yields.c ARGS others sleep)
bosk_hard_test(NAME sleeps_early SOURCES yields.c ARGS early)
bosk_hard_test(NAME sleeps_rest SOURCES yields.c ARGS rest)
foreach(mode ring all unequal)
  bosk_hard_test(NAME sleeps_${mode}_alone SOURCES yields.c ARGS ${mode} nanosleep ENV BOSK_PREEMPT_PERIOD=off)
endforeach()

# --- Children of a process that loads libraries ----------------------------------------------------
foreach(mode region nested tasks texts sleeps)
  bosk_hard_test(NAME forked_${mode} SOURCES forked.c ARGS ${mode} TIMEOUT 60)
endforeach()
bosk_hard_test(NAME forked_names SOURCES forked.c ARGS names TIMEOUT 60 FLAGS -DWITH_NAMES)
bosk_hard_test(NAME fork_stacks TIMEOUT 60)
bosk_hard_test(NAME fork_stacks_strict SOURCES fork_stacks.c ENV BOSK_IDENTITY=strict TIMEOUT 60)

find_package(Python3 COMPONENTS Interpreter REQUIRED)
add_test(NAME hard.modes COMMAND Python3::Interpreter "${CMAKE_CURRENT_LIST_DIR}/modes.py" "${PROJECT_BINARY_DIR}"
                                 "${PROJECT_SOURCE_DIR}/src/context/suspects.cpp")
set_tests_properties(hard.modes PROPERTIES LABELS programs)

# All of these programs and nothing else, for ./dev test --long.
add_custom_target(bosk_hard)
get_directory_property(programs BUILDSYSTEM_TARGETS)
list(FILTER programs INCLUDE REGEX "^hard_")
add_dependencies(bosk_hard ${programs})
