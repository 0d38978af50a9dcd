// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The result as text and as JSON. docs/locality.md describes both.
#ifndef BOSK_LAB_REPORT_H
#define BOSK_LAB_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

struct locality_report {
  const struct locality_session* session;
  unsigned run;   // which counting of this machine's life, from 1
  bool complete;  // false: the machine ended while it was counting
};

void locality_report_text(const struct locality_report* report, FILE* to);
void locality_report_json(const struct locality_report* report, FILE* to);

// Writes FOLDER/locality.json and .txt for the first run, FOLDER/locality-RUN.* for later ones: each under
// another name first, so that whoever sees the file sees all of it. The JSON comes last: where it is, the
// text is too. False, and errno, if that failed; then neither the text nor the JSON is new.
bool locality_report_write(const struct locality_report* report, const char* folder);

#ifdef __cplusplus
}
#endif
#endif
