// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The virtio-serial ports, found by the names that the host gave them.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "init.h"

struct Ports ports = {-1, -1, -1, -1};

int write_all(int file, const void* data, size_t size) {
  const char* at = data;
  while (size > 0) {
    const ssize_t written = write(file, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return 0;
    at += written;
    size -= (size_t)written;
  }
  return 1;
}

static int read_all(int file, void* data, size_t size) {
  char* at = data;
  while (size > 0) {
    const ssize_t got = read(file, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return 0;
    if (got == 0) {
      // A port whose host end the kernel has not heard of yet reads as empty; it is told soon.
      const struct timespec moment = {0, 1000000};
      nanosleep(&moment, NULL);
      continue;
    }
    at += got;
    size -= (size_t)got;
  }
  return 1;
}

void send_message(char kind, const void* payload, size_t size) {
  unsigned char header[LAB_HEADER] = {(unsigned char)kind, size & 255, size >> 8 & 255,
                                      size >> 16 & 255, size >> 24 & 255};
  // Nobody is left to be told when this fails.
  if (write_all(ports.control, header, sizeof header)) write_all(ports.control, payload, size);
}

char* receive_message(int port, char* kind, size_t* size) {
  unsigned char header[LAB_HEADER];
  if (!read_all(port, header, sizeof header)) give_up(125, "the guest cannot read from its host");
  *kind = (char)header[0];
  *size = header[1] | (size_t)header[2] << 8 | (size_t)header[3] << 16 | (size_t)header[4] << 24;
  if (*size > LAB_MOST) give_up(125, "the guest got a message of %zu bytes", *size);
  char* payload = malloc(*size + 1);
  if (payload == NULL) give_up(125, "the guest has no memory for a message of %zu bytes", *size);
  if (!read_all(port, payload, *size)) give_up(125, "the guest cannot read from its host");
  payload[*size] = '\0';
  return payload;
}

static int has_name(const char* device, const char* name) {
  char path[300];
  snprintf(path, sizeof path, "/sys/class/virtio-ports/%s/name", device);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[64] = "";
  const ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  if (got <= 0) return 0;
  text[strcspn(text, "\n")] = '\0';
  return strcmp(text, name) == 0;
}

static int open_port(const char* name) {
  DIR* folder = opendir("/sys/class/virtio-ports");
  if (folder == NULL) return -1;
  int port = -1;
  for (struct dirent* entry = readdir(folder); entry != NULL && port < 0; entry = readdir(folder)) {
    if (entry->d_name[0] == '.' || !has_name(entry->d_name, name)) continue;
    char path[300];
    snprintf(path, sizeof path, "/dev/%s", entry->d_name);
    port = open(path, O_RDWR | O_CLOEXEC);
  }
  closedir(folder);
  return port;
}

/// The host announces ports one by one after the driver is there; nothing tells user space when.
static int wait_for_port(const char* name) {
  for (int tries = 0; tries < 5000; tries++) {
    const int port = open_port(name);
    if (port >= 0) return port;
    const struct timespec moment = {0, 2000000};
    nanosleep(&moment, NULL);
  }
  give_up(125, "the guest's kernel has no virtio port %s", name);
}

void open_ports(void) {
  ports.control = wait_for_port(LAB_PORT_CONTROL);
  ports.input = wait_for_port(LAB_PORT_STDIN);
  ports.output = wait_for_port(LAB_PORT_STDOUT);
  ports.error = wait_for_port(LAB_PORT_STDERR);
}
