// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The guest's file systems: the host's root, a layer over it that takes what is written, and folders
// that are really written.
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init.h"

// cache=loose: the host's files are taken not to change while the guest runs; programs would take ten
// times as long to start. What is written must get out: cache=mmap keeps no dirty page but those mapped.
#define TRANSPORT "trans=virtio,version=9p2000.L,msize=512000,"
#define READ_ONLY TRANSPORT "cache=loose"
#define WRITABLE TRANSPORT "cache=mmap"

enum { kMostWritable = 8 };
static char writable[kMostWritable][4096];
static size_t n_writable;

static void mount_or_give_up(const char* source, const char* path, const char* type,
                             unsigned long flags, const char* options) {
  if (mount(source, path, type, flags, options) != 0) {
    give_up(125, "the guest cannot mount %s on %s: %s", type, path, strerror(errno));
  }
}

/// What programs use if it is there.
static void mount_if_possible(const char* type, const char* path, const char* options) {
  mkdir(path, 0755);
  mount(type, path, type, MS_NOSUID, options);
}

/// Programs talk to themselves through 127.0.0.1.
static void bring_up_loopback(void) {
  const int socket_file = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_file < 0) return;
  struct ifreq request;
  memset(&request, 0, sizeof request);
  strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  ioctl(socket_file, SIOCSIFFLAGS, &request);
  close(socket_file);
}

void enter_host_root(void) {
  mkdir("/host", 0755);
  mkdir("/layer", 0755);
  mkdir("/root", 0755);
  mount_or_give_up("hostroot", "/host", "9p", MS_RDONLY, READ_ONLY);
  mount_or_give_up("tmpfs", "/layer", "tmpfs", 0, "mode=755");
  mkdir("/layer/written", 0755);
  mkdir("/layer/work", 0755);
  mount_or_give_up("overlay", "/root", "overlay", 0,
                   "lowerdir=/host,upperdir=/layer/written,workdir=/layer/work");
  // The layer stays reachable for report_lost_files(), but not for programs.
  if (mount("/dev", "/root/dev", NULL, MS_MOVE, NULL) != 0 ||
      mount("/proc", "/root/proc", NULL, MS_MOVE, NULL) != 0 ||
      mount("/sys", "/root/sys", NULL, MS_MOVE, NULL) != 0) {
    give_up(125, "the host's root has no /dev, /proc or /sys to mount on: %s", strerror(errno));
  }
  mount_if_possible("devpts", "/root/dev/pts", "ptmxmode=666,mode=620,gid=5");
  mount_if_possible("tmpfs", "/root/dev/shm", "mode=1777");
  mount_if_possible("mqueue", "/root/dev/mqueue", "");
  mount_if_possible("hugetlbfs", "/root/dev/hugepages", "mode=1777");
  mount_if_possible("tmpfs", "/root/run", "mode=755");
  mount_if_possible("cgroup2", "/root/sys/fs/cgroup", "");
  mount_if_possible("debugfs", "/root/sys/kernel/debug", "");
  mount_if_possible("tracefs", "/root/sys/kernel/tracing", "");
  symlink("/proc/self/fd", "/root/dev/fd");
  symlink("/proc/self/fd/0", "/root/dev/stdin");
  symlink("/proc/self/fd/1", "/root/dev/stdout");
  symlink("/proc/self/fd/2", "/root/dev/stderr");
  sethostname("lab", 3);
  bring_up_loopback();
}

void mount_writable(const char* tag, const char* path) {
  if (n_writable == kMostWritable) give_up(125, "more than %d writable folders", kMostWritable);
  char* inside = writable[n_writable];
  if (snprintf(inside, sizeof writable[0], "/root%s", path) >= (int)sizeof writable[0]) {
    give_up(125, "%s: the path is too long", path);
  }
  mount_or_give_up(tag, inside, "9p", MS_NOSUID, WRITABLE);
  n_writable++;
}

void unmount_writable(void) {
  while (n_writable > 0) umount2(writable[--n_writable], 0);
}

static int is_writable(const char* path) {
  for (size_t i = 0; i < n_writable; i++) {
    if (strcmp(path, writable[i] + strlen("/root")) == 0) return 1;
  }
  return 0;
}

/// The first file that was written below the folder: enough to say that there are some.
static int find_lost_file(const char* directory, int depth) {
  char layer[4200];
  if (depth > 16 || is_writable(directory) ||
      snprintf(layer, sizeof layer, "/layer/written%s", directory) >= (int)sizeof layer) {
    return 0;
  }
  DIR* folder = opendir(layer);
  if (folder == NULL) return 0;
  int found = 0;
  for (struct dirent* entry = readdir(folder); entry != NULL && !found; entry = readdir(folder)) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    char path[4200];
    const char* gap = strcmp(directory, "/") == 0 ? "" : "/";
    if (snprintf(path, sizeof path, "%s%s%s", directory, gap, entry->d_name) >= (int)sizeof path) {
      continue;
    }
    if (entry->d_type == DT_DIR) {
      found = find_lost_file(path, depth + 1);
    } else if (entry->d_type == DT_REG) {
      send_message(LAB_LOST, path, strlen(path));
      found = 1;
    }
  }
  closedir(folder);
  return found;
}

void report_lost_files(const char* directory) {
  // Everything is below /, and temporary folders are for what is to be lost.
  if (strcmp(directory, "/") == 0 || strcmp(directory, "/tmp") == 0) return;
  find_lost_file(directory, 0);
}
