// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a library does by syscall(2) (numbers_library.c), or by the functions that libc has for it (names_library.c); see numbers.c.
#pragma once

long number_of_thread(void);
/// To the first CPU that it may use.
int bind_by_number(void);
/// How many CPUs it may use.
int cpus_by_number(void);
/// -1, and EBADF: six arguments come through.
long bad_call(int* error);
/// The sixth argument: an offset.
int map_by_number(int descriptor, long offset);
/// The child's exit status.
int fork_by_number(int status);
/// The same, of a child that asks for its number and changes its priority before.
int vfork_and_call(int status);
/// Of the calling thread, as the kernel shows it. 0: done.
int name_thread(const char* name);
int name_of_thread(char* name);
int set_nice(int value);
int nice_of_thread(void);
/// An alternate stack for signals.
int set_signal_stack(void* memory, unsigned long bytes);
void* signal_stack(void);
