// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Takes of the little static TLS that glibc keeps for libraries that are loaded late.
static __thread char taken[TAKEN] __attribute__((tls_model("initial-exec")));
char* take_static_tls(void);
char* take_static_tls(void) { return taken; }
