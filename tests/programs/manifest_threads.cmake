# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Programs that use bosk's own threads and bubbles (include/bosk/bosk.h); nothing else has them.

function(bosk_thread_test)
  bosk_program_test(${ARGN} BOSK_ONLY FLAGS -I${PROJECT_SOURCE_DIR}/include LINK gomp LABELS threads)
endfunction()

foreach(mode many recursive identities spinning main-spins main-blocks exits detached sleepers
             pthreads forks stale-in-child ends)
  bosk_thread_test(NAME bosk_threads_${mode} SOURCES bosk_threads.c ARGS ${mode})
  bosk_thread_test(NAME bosk_threads_${mode}_alone SOURCES bosk_threads.c ARGS ${mode}
                   ENV BOSK_WORKERS=1)
endforeach()
foreach(mode many recursive spinning forks stale-in-child)
  bosk_thread_test(NAME bosk_threads_${mode}_quick SOURCES bosk_threads.c ARGS ${mode}
                   ENV BOSK_WORKERS=5 BOSK_PREEMPT_PERIOD=100us)
endforeach()
foreach(mode names memory threads)
  bosk_thread_test(NAME bosk_last_error_${mode} SOURCES bosk_last_error.c ARGS ${mode})
  bosk_thread_test(NAME bosk_last_error_${mode}_alone SOURCES bosk_last_error.c ARGS ${mode} ENV BOSK_WORKERS=1)
endforeach()
bosk_thread_test(NAME bosk_last_error_memory_numa SOURCES bosk_last_error.c ARGS memory
                 ENV "BOSK_SYNTHETIC=node:4 core:2 pu:1" BOSK_WORKERS=4)
# In a pool whose workers have seats (docs/binding.md).
foreach(mode many recursive pthreads forks)
  bosk_thread_test(NAME bosk_threads_${mode}_homes SOURCES bosk_threads.c ARGS ${mode} ENV BOSK_WORKER_HOMES=on)
endforeach()
foreach(mode tree grows moves nests wanderers barrier)
  bosk_thread_test(NAME bosk_bubbles_${mode} SOURCES bosk_bubbles.c ARGS ${mode})
  bosk_thread_test(NAME bosk_bubbles_${mode}_burst SOURCES bosk_bubbles.c ARGS ${mode}
                   ENV BOSK_POLICY=burst BOSK_WORKERS=3 BOSK_PREEMPT_PERIOD=200us)
  # A machine of many levels, few of whose processors have a worker.
  bosk_thread_test(NAME bosk_bubbles_${mode}_numa SOURCES bosk_bubbles.c ARGS ${mode}
                   ENV "BOSK_SYNTHETIC=node:4 core:4 pu:2" BOSK_WORKERS=5)
endforeach()
# What closed bubbles lend to those who wait for it.
foreach(mode recursion asleep)
  bosk_thread_test(NAME bosk_lending_${mode} SOURCES bosk_lending.c ARGS ${mode})
  bosk_thread_test(NAME bosk_lending_${mode}_alone SOURCES bosk_lending.c ARGS ${mode} ENV BOSK_WORKERS=1)
  bosk_thread_test(NAME bosk_lending_${mode}_quick SOURCES bosk_lending.c ARGS ${mode}
                   ENV "BOSK_SYNTHETIC=l3:2 core:2" BOSK_WORKERS=5 BOSK_PREEMPT_PERIOD=100us)
  bosk_thread_test(NAME bosk_lending_${mode}_nodes SOURCES bosk_lending.c ARGS ${mode}
                   ENV "BOSK_SYNTHETIC=node:2 core:2" BOSK_WORKERS=5 BOSK_PREEMPT_PERIOD=100us)
endforeach()
bosk_thread_test(NAME bosk_lending_urgency SOURCES bosk_lending.c ARGS urgency
                 ENV BOSK_WORKERS=1 BOSK_PREEMPT_PERIOD=off)
foreach(policy gang spread)
  bosk_thread_test(NAME bosk_bubbles_gangs_${policy} SOURCES bosk_bubbles.c ARGS gangs
                   ENV "BOSK_SYNTHETIC=core:4" BOSK_WORKERS=4 BOSK_POLICY=${policy})
endforeach()
bosk_thread_test(NAME bosk_errors)
bosk_thread_test(NAME bosk_pauses ENV BOSK_WORKERS=4)
foreach(mode priorities yields preemption light names figure-1 slices)
  bosk_thread_test(NAME bosk_attributes_${mode} SOURCES bosk_attributes.c ARGS ${mode}
                   ENV BOSK_WORKERS=1 BOSK_POLICY=null)
endforeach()
# Slices of many more ticks than a timer goes on for where nothing waits on the worker's queues.
bosk_thread_test(NAME bosk_attributes_long-slices SOURCES bosk_attributes.c ARGS long-slices
                 ENV BOSK_WORKERS=1 BOSK_POLICY=null BOSK_PREEMPT_PERIOD=500us)
foreach(ticks 1 100)
  bosk_thread_test(NAME bosk_attributes_policy-slices_${ticks} SOURCES bosk_attributes.c ARGS policy-slices
                   ENV BOSK_WORKERS=1 BOSK_POLICY=gang:${ticks} BOSK_PREEMPT_PERIOD=500us)
endforeach()
bosk_thread_test(NAME bosk_attributes_places SOURCES bosk_attributes.c ARGS places
                 ENV "BOSK_SYNTHETIC=core:4" BOSK_WORKERS=4)
foreach(policy spread burst null)
  bosk_thread_test(NAME bosk_attributes_demands_${policy} SOURCES bosk_attributes.c ARGS demands
                   ENV "BOSK_SYNTHETIC=core:4 pu:2" BOSK_WORKERS=8 BOSK_POLICY=${policy})
endforeach()
foreach(mode regions members bubbles pauses)
  bosk_thread_test(NAME bosk_openmp_${mode} SOURCES bosk_openmp.c ARGS ${mode})
  bosk_thread_test(NAME bosk_openmp_${mode}_alone SOURCES bosk_openmp.c ARGS ${mode} ENV BOSK_WORKERS=1)
  foreach(identity strict relaxed)
    bosk_thread_test(NAME bosk_openmp_${mode}_${identity} SOURCES bosk_openmp.c ARGS ${mode}
                     ENV BOSK_WORKERS=4 BOSK_IDENTITY=${identity} BOSK_PREEMPT_PERIOD=300us)
  endforeach()
endforeach()
bosk_thread_test(NAME bosk_light TIMEOUT 120)
# One worker for processors of several levels: nobody else comes for those who wait farther away.
foreach(where processors levels)
  bosk_thread_test(NAME bosk_turns_${where}_yield SOURCES bosk_turns.c ARGS ${where} yield
                   ENV "BOSK_SYNTHETIC=node:2 core:2 pu:2" BOSK_WORKERS=1 BOSK_PREEMPT_PERIOD=off)
  bosk_thread_test(NAME bosk_turns_${where}_spin SOURCES bosk_turns.c ARGS ${where} spin
                   ENV "BOSK_SYNTHETIC=node:2 core:2 pu:2" BOSK_WORKERS=1 BOSK_PREEMPT_PERIOD=100us)
endforeach()
bosk_thread_test(NAME bosk_fork_first)

# A policy that takes every bubble in charge, and lets it out from a thread of its own.
if(TARGET probe)
  foreach(mode tree grows moves nests wanderers barrier)
    bosk_thread_test(NAME bosk_bubbles_${mode}_plugin SOURCES bosk_bubbles.c ARGS ${mode}
                     ENV "BOSK_POLICY=${PROJECT_BINARY_DIR}/tests/plugins/probe.so:thread"
                         "BOSK_SYNTHETIC=node:2 core:2 pu:1" BOSK_WORKERS=4)
  endforeach()
  add_dependencies(programs_bosk_bubbles probe)
endif()
bosk_thread_test(NAME bosk_blocked_main SOURCES bosk_blocked_main.c)
bosk_thread_test(NAME bosk_blocked_main_alone SOURCES bosk_blocked_main.c ENV BOSK_WORKERS=1)
bosk_thread_test(NAME bosk_blocked_main_no_ticks SOURCES bosk_blocked_main.c ENV BOSK_WORKERS=2 BOSK_PREEMPT_PERIOD=off)
bosk_thread_test(NAME bosk_blocked_main_no_ticks_active SOURCES bosk_blocked_main.c
                 ENV BOSK_WORKERS=2 BOSK_PREEMPT_PERIOD=off OMP_WAIT_POLICY=active)
