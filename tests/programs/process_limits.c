// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Little to live on: few processes, little address space, one CPU, no standard
// descriptors.
//   process_limits processes | address-space | one-cpu | pinned-thread | quota | no-descriptors
#include "check.h"

#include <fcntl.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int members(int threads) {
  int sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  {
#pragma omp barrier
    sum++;
#pragma omp barrier
  }
  return sum;
}

static int nested_members(int outer, int inner) {
  int sum = 0;
#pragma omp parallel num_threads(outer) reduction(+ : sum)
  sum += members(inner);
  return sum;
}

/// What a limited child may do: its whole work, or end with libgomp's line and status 1.
static void limited(const char* what, void (*limit)(int), int value, int threads) {
  int ends[2];
  CHECK(pipe(ends) == 0, "pipe: errno %d", errno);
  pid_t pid = fork();
  CHECK(pid >= 0, "fork: errno %d", errno);
  if (pid == 0) {
    arm_watchdog(25);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    limit(value);
    if (members(threads) != threads) _exit(50);
    if (nested_members(4, threads) != 4 * threads) _exit(51);
    _exit(40);
  }
  close(ends[1]);
  char text[4096] = "";
  size_t length = 0;
  ssize_t got;
  while ((got = read(ends[0], text + length, sizeof text - 1 - length)) > 0) length += (size_t)got;
  close(ends[0]);
  int status = 0;
  CHECK(waitpid(pid, &status, 0) == pid, "waitpid: errno %d", errno);
  CHECK(WIFEXITED(status), "%s %d: the child died of signal %d: %s", what, value, WTERMSIG(status),
        text);
  status = WEXITSTATUS(status);
  CHECK(status == 40 || (status == 1 && (strstr(text, "libgomp: Thread creation failed: ") ||
                                         strstr(text, "libgomp: Out of memory allocating "))),
        "%s %d: status %d, output '%s'", what, value, status, text);
}

static void limit_processes(int more) {
  // A user who has no processes, so that the limit is what it says.
  uid_t user = (uid_t)(60000000 + getpid());
  CHECK(setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0, "setresuid: errno %d",
        errno);
  struct rlimit limit = {(rlim_t)more, (rlim_t)more};
  CHECK(setrlimit(RLIMIT_NPROC, &limit) == 0, "setrlimit: errno %d", errno);
}

static void limit_address_space(int megabytes) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  CHECK(file && fscanf(file, "%ld", &pages) == 1, "cannot read /proc/self/statm");
  fclose(file);
  rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)megabytes << 20);
  struct rlimit limit = {bytes, bytes};
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit: errno %d", errno);
}

/// One CPU from before the first region on: all teams are there, and the number of processors is true.
static void one_cpu(void) {
  cpu_set_t mask, one;
  CHECK(sched_getaffinity(0, sizeof mask, &mask) == 0, "sched_getaffinity: errno %d", errno);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &mask)) ++cpu;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity: errno %d", errno);
  CHECK(omp_get_num_procs() == 1, "%d processors", omp_get_num_procs());
  for (int threads = 1; threads <= 9; threads += 2) {
    CHECK(members(threads) == threads, "a smaller team");
    CHECK(nested_members(3, threads) == 3 * threads, "a smaller nested team");
#pragma omp parallel num_threads(threads)
    CHECK(sched_getcpu() == cpu, "member %d runs on CPU %d, not %d", omp_get_thread_num(),
          sched_getcpu(), cpu);
  }
}

static int cpus[CPU_SETSIZE], cpu_count;
static cpu_set_t all_cpus;

static void read_cpus(void) {
  CHECK(sched_getaffinity(0, sizeof all_cpus, &all_cpus) == 0, "sched_getaffinity: errno %d",
        errno);
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &all_cpus)) cpus[cpu_count++] = i;
}

/// The members of a region of several may use the CPUs that its opener may use.
static void check_cpus(int threads, const char* whose) {
  cpu_set_t opener;
  CHECK(sched_getaffinity(0, sizeof opener, &opener) == 0, "sched_getaffinity: errno %d", errno);
#pragma omp parallel num_threads(threads)
  {
    cpu_set_t mine;
    CHECK(sched_getaffinity(0, sizeof mine, &mine) == 0, "sched_getaffinity: errno %d", errno);
    CHECK(CPU_EQUAL(&mine, &opener), "%s: member %d may use %d CPUs, its opener %d", whose,
          omp_get_thread_num(), CPU_COUNT(&mine), CPU_COUNT(&opener));
#pragma omp barrier
  }
}

static void* pinned_thread(void* cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(*(int*)cpu, &one);
  CHECK(pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0, "pthread_setaffinity_np");
  CHECK(omp_get_num_procs() == 1, "%d processors in a pinned thread", omp_get_num_procs());
  check_cpus(2, "pinned thread");
  check_cpus(6, "pinned thread");
  return cpu;
}

/// A thread that the program has pinned has a team beside it, and nobody else has, before or after.
static void pinned_threads(void) {
  read_cpus();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < cpu_count; ++i) {
      pthread_t handle;
      CHECK(pthread_create(&handle, NULL, pinned_thread, &cpus[i]) == 0, "pthread_create failed");
      pthread_join(handle, NULL);
    }
    check_cpus(2, "main");
    check_cpus(6, "main");
    CHECK(omp_get_num_procs() == cpu_count, "%d processors, not %d", omp_get_num_procs(),
          cpu_count);
  }
}

static int write_line(const char* path, long value) {
  FILE* file = fopen(path, "w");
  if (!file) return 0;
  int good = fprintf(file, "%ld\n", value) > 0;
  return fclose(file) == 0 && good;
}

/// A quota of CPU time is no number of CPUs: as on libgomp it changes neither what the program is told nor
/// the size of its teams, and they get on.
static int quota(void) {
  read_cpus();
  static const char* const roots[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"};
  static const char* const files[] = {"cpu.cfs_quota_us", "cpu.max"};
  char folder[128], path[256];
  int way = 0;
  for (; way < 2; ++way) {
    snprintf(folder, sizeof folder, "%s/bosk-test-%d", roots[way], getpid());
    if (mkdir(folder, 0755) != 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, files[way]);
    if (write_line(path, 50000)) break;
    rmdir(folder);
  }
  if (way == 2) return 77;
  pid_t pid = fork();
  CHECK(pid >= 0, "fork: errno %d", errno);
  if (pid == 0) {
    arm_watchdog(25);
    snprintf(path, sizeof path, "%s/cgroup.procs", folder);
    if (!write_line(path, getpid())) _exit(77);
    CHECK(omp_get_num_procs() == cpu_count, "%d processors, not %d", omp_get_num_procs(),
          cpu_count);
    CHECK(omp_get_max_threads() == cpu_count, "%d threads", omp_get_max_threads());
    for (int round = 0; round < 100; ++round)
      CHECK(members(2) == 2 && members(5) == 5 && nested_members(3, 3) == 9, "a smaller team");
    _exit(40);
  }
  int status = 0;
  CHECK(waitpid(pid, &status, 0) == pid, "waitpid: errno %d", errno);
  // The group is empty when its process has been reaped, or very soon after.
  while (rmdir(folder) != 0 && errno == EBUSY) sched_yield();
  CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 40 || WEXITSTATUS(status) == 77),
        "wait status %#x", (unsigned)status);
  return WEXITSTATUS(status) == 40 ? 0 : 77;
}

/// A program that was started without them: the runtime takes no descriptor of its own that the program
/// would then find in place of its standard output.
static void no_descriptors(char** argv) {
  if (!argv[2]) {
    int kept = fcntl(STDOUT_FILENO, F_DUPFD, 200);
    CHECK(kept == 200, "F_DUPFD: errno %d", errno);
    for (int i = 0; i < 200; ++i) close(i);
    execl("/proc/self/exe", argv[0], argv[1], "started", (char*)NULL);
    _exit(1);
  }
  int sum = 0;
  for (int round = 0; round < 20; ++round) sum += members(2) + members(6) + nested_members(3, 3);
  int first = open("/dev/null", O_RDWR), second = open("/dev/null", O_RDWR);
  int third = open("/dev/null", O_RDWR), fourth = open("/dev/null", O_RDWR);
  CHECK(dup2(200, STDOUT_FILENO) == STDOUT_FILENO, "dup2: errno %d", errno);
  CHECK(sum == 20 * 17, "sum %d", sum);
  CHECK(first == 0 && second == 1 && third == 2 && fourth == 3,
        "descriptors %d %d %d %d were the first free ones", first, second, third, fourth);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  omp_set_dynamic(0);
  omp_set_max_active_levels(2);
  if (!strcmp(mode, "processes")) {
    if (geteuid() != 0) return 77;  // only root can become a user without processes
    for (int more = 1; more <= 12; ++more) limited("RLIMIT_NPROC", limit_processes, more, 6);
  } else if (!strcmp(mode, "address-space")) {
    for (int megabytes = 0; megabytes <= 64; megabytes += 3)
      limited("RLIMIT_AS", limit_address_space, megabytes, 6);
  } else if (!strcmp(mode, "one-cpu")) {
    one_cpu();
  } else if (!strcmp(mode, "pinned-thread")) {
    pinned_threads();
  } else if (!strcmp(mode, "quota")) {
    int skipped = quota();
    if (skipped) return skipped;
  } else if (!strcmp(mode, "no-descriptors")) {
    no_descriptors(argv);
  } else {
    fail_at(__LINE__, "unknown mode %s", mode);
  }
  return passed();
}
