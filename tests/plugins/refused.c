/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Plug-ins that must be refused, one for each macro that it is compiled with; and two that are
 * accepted: one with a table that ends before the hooks, one with room for hooks of later. */
#include <bosk/policy.h>

#if defined WRONG_VERSION
const struct bosk_policy bosk_policy_plugin = {99, (uint32_t)sizeof(struct bosk_policy),
                                               .name = "x"};
#elif defined WRONG_SIZE
const struct bosk_policy bosk_policy_plugin = {BOSK_POLICY_INTERFACE, 3, .name = "x"};
#elif defined NO_NAME
const struct bosk_policy bosk_policy_plugin = {BOSK_POLICY_HEADER, .summary = "nameless"};
#elif defined BAD_NAME
const struct bosk_policy bosk_policy_plugin = {BOSK_POLICY_HEADER, .name = "two words"};
#elif defined NO_SYMBOL
int some_other_symbol;
int some_other_symbol = 1;
#elif defined UNRESOLVED
void no_library_has_this(void);
static void stop(void* state) {
  (void)state;
  no_library_has_this();
}
const struct bosk_policy bosk_policy_plugin = {BOSK_POLICY_HEADER, .name = "x", .stop = stop};
#elif defined OLD_TABLE
static void stop(void* state) { (void)state; }
const struct bosk_policy bosk_policy_plugin = {BOSK_POLICY_INTERFACE,
                                               (uint32_t)offsetof(struct bosk_policy, check),
                                               .name = "old", .stop = stop};
#else
/* A header of later has one hook more. */
struct newer {
  struct bosk_policy known;
  void (*hook_of_later)(void* state);
};
__attribute__((unused)) static void later(void* state) { (void)state; }
#if defined NEWER_HOOKS
#define LATER later
#else
#define LATER 0
#endif
static const struct newer table = {
    {BOSK_POLICY_INTERFACE, (uint32_t)sizeof(struct newer), .name = "newer"}, LATER};
extern const struct bosk_policy bosk_policy_plugin __attribute__((alias("table")));
#endif
