// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the job that the host sends.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "init.h"

static void add_word(char*** words, size_t* count, char* word) {
  *words = realloc(*words, (*count + 2) * sizeof **words);
  if (*words == NULL) give_up(125, "the guest has no memory for the command line");
  (*words)[(*count)++] = word;
  (*words)[*count] = NULL;
}

static void read_user(struct Job* job, char* text) {
  job->user = (uid_t)strtoul(text, &text, 10);
  job->group = (gid_t)strtoul(text, &text, 10);
  const size_t most = sizeof job->groups / sizeof job->groups[0];
  while (*text == ' ' && job->n_groups < most) {
    job->groups[job->n_groups++] = (gid_t)strtoul(text, &text, 10);
  }
}

static void read_limit(struct Job* job, char* text) {
  const size_t most = sizeof job->limits / sizeof job->limits[0];
  if (job->n_limits == most) return;
  job->limits[job->n_limits].resource = (int)strtoul(text, &text, 10);
  job->limits[job->n_limits].soft = strtoull(text, &text, 10);
  job->limits[job->n_limits++].hard = strtoull(text, &text, 10);
}

/// The emulated clock chip tells whole seconds; files that the host writes must not be of tomorrow.
static void set_clock(char* text) {
  struct timespec now;
  now.tv_sec = strtoll(text, &text, 10);
  now.tv_nsec = strtol(text, &text, 10);
  clock_settime(CLOCK_REALTIME, &now);
}

void receive_job(struct Job* job) {
  memset(job, 0, sizeof *job);
  char kind;
  size_t size;
  char* item = receive_message(ports.control, &kind, &size);
  if (kind != LAB_JOB) give_up(125, "the guest got a message of kind %d, not its job", kind);
  const char* const end = item + size;  // the texts stay where they are, for ever
  size_t n_arguments = 0;
  size_t n_variables = 0;
  job->directory = "/";
  for (char* next; item < end; item = next) {
    next = item + strlen(item) + 1;
    char* const text = item + 1;
    switch (item[0]) {
      case LAB_ARGUMENT:
        add_word(&job->arguments, &n_arguments, text);
        break;
      case LAB_VARIABLE:
        add_word(&job->environment, &n_variables, text);
        break;
      case LAB_DIRECTORY:
        job->directory = text;
        break;
      case LAB_ONE_STREAM:
        job->one_stream = 1;
        break;
      case LAB_CLOCK:
        set_clock(text);
        break;
      case LAB_USER:
        read_user(job, text);
        break;
      case LAB_LIMIT:
        read_limit(job, text);
        break;
      case LAB_TERMINAL:
        job->terminal = 1;
        sscanf(text, "%u %u", &job->rows, &job->columns);
        break;
      case LAB_WRITABLE: {
        char* const gap = strchr(text, ' ');
        if (gap == NULL) give_up(125, "the guest cannot read its job");
        *gap = '\0';
        mount_writable(text, gap + 1);
        break;
      }
      default:
        give_up(125, "the guest does not know items of kind %d", item[0]);
    }
  }
  if (n_arguments == 0) give_up(125, "the guest got no command");
  static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
  if (n_variables == 0) add_word(&job->environment, &n_variables, path);
}
