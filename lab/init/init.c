// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order of things, and the ends.
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

void power_off(void) {
  unmount_writable();
  sync();
  reboot(RB_POWER_OFF);
  for (;;) pause();  // a kernel without ACPI: the host ends the guest when it has the last message
}

void give_up(int status, const char* format, ...) {
  char text[700];
  int length = snprintf(text, sizeof text, "%d ", status);
  va_list arguments;
  va_start(arguments, format);
  length += vsnprintf(text + length, sizeof text - (size_t)length, format, arguments);
  va_end(arguments);
  if (length >= (int)sizeof text) length = (int)sizeof text - 1;
  if (ports.control >= 0) {
    send_message(LAB_ERROR, text, (size_t)length);
  } else {
    dprintf(STDOUT_FILENO, "lab: %s\n", text);  // the console
  }
  power_off();
}

static void mount_early(const char* type, const char* path) {
  mkdir(path, 0755);
  // Kernels may have mounted /dev themselves.
  if (mount(type, path, type, MS_NOSUID, "") != 0 && errno != EBUSY) {
    give_up(125, "the guest cannot mount %s: %s", path, strerror(errno));
  }
}

int main(void) {
  // Writing to a port or a pipe that nobody reads must be an error, not an end.
  signal(SIGPIPE, SIG_IGN);
  umask(022);
  mount_early("devtmpfs", "/dev");
  mount_early("proc", "/proc");
  mount_early("sysfs", "/sys");
  const int console = open("/dev/console", O_RDWR | O_CLOEXEC);
  for (int file = 0; file < 3; file++) {
    if (console >= 0 && console != file) dup2(console, file);
  }

  load_modules();
  open_ports();
  enter_host_root();
  struct utsname kernel;
  uname(&kernel);
  send_message(LAB_READY, kernel.release, strlen(kernel.release));

  struct Job job;
  receive_job(&job);
  struct Program program;
  start_program(&job, &program);
  send_message(LAB_STARTED, "", 0);
  const int status = relay(&job, &program);

  report_lost_files(job.directory);
  unmount_writable();
  char text[16];
  send_message(LAB_EXIT, text, (size_t)snprintf(text, sizeof text, "%d", status));
  power_off();
}
