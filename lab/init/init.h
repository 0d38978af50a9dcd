// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The guest's first process: loads modules, mounts the host's files, runs one program and reports.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../protocol.h"

/// Ends the guest after telling the host why: over the control port if that is open, else on the console.
/// `status` is what the tool exits with.
__attribute__((noreturn, format(printf, 2, 3))) void give_up(int status, const char* format, ...);
/// Flushes what is written on the host, and turns the machine off.
__attribute__((noreturn)) void power_off(void);

// --- ports.c
struct Ports {
  int control;
  int input;
  int output;
  int error;
};
extern struct Ports ports;
/// Opens all four; waits until the kernel has them.
void open_ports(void);
/// Sends a message on the control port.
void send_message(char kind, const void* payload, size_t size);
/// Receives a message into malloc'ed memory with a NUL behind it.
char* receive_message(int port, char* kind, size_t* size);
/// All of it, or false.
int write_all(int file, const void* data, size_t size);

// --- modules.c
/// Loads /modules/LIST's files in their order.
void load_modules(void);

// --- mounts.c
/// Mounts the host's root read-only with a writable layer over it, and makes it the root.
void enter_host_root(void);
/// Mounts a writable export over the folder it belongs to.
void mount_writable(const char* tag, const char* path);
/// Lets go of the writable exports, so that all is on the host.
void unmount_writable(void);
/// Tells the host which files below `directory` will be lost.
void report_lost_files(const char* directory);

// --- job.c
struct Job {
  char** arguments;    // ends with NULL
  char** environment;  // ends with NULL
  const char* directory;
  int one_stream;
  int terminal;
  unsigned rows, columns;
  uid_t user;
  gid_t group;
  gid_t groups[64];
  size_t n_groups;
  struct {
    int resource;
    uint64_t soft, hard;
  } limits[16];
  size_t n_limits;
};
/// Waits for the job and does at once what concerns the whole guest: writable folders.
void receive_job(struct Job* job);

// --- program.c
struct Program {
  pid_t process;
  int input;   // to its standard input, or the terminal; -1: closed
  int output;  // from its standard output, or the terminal
  int error;   // from its standard error; -1: there is none
};
/// Starts the job's program; gives up with 126 or 127 if it cannot be run.
void start_program(const struct Job* job, struct Program* program);

// --- relay.c
/// Carries bytes until the program has ended, ends what it left behind, and returns its status as
/// shells count it.
int relay(const struct Job* job, struct Program* program);
