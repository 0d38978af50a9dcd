// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The example of docs/design/model-checking.md, which shows these lines.
#include "mailbox_protocol.h"

#include <functional>
#include <memory>

#include "checker/expect.h"

namespace {

std::function<void()> mailbox(bool looks) {
  return [=] {  // runs once per execution: builds fresh state
    auto m = std::make_shared<Mailbox<model::ModelAtomics>>();
    model::spawn([=] { m->send(5); });  // at most 7 threads; start when the body is over
    model::spawn([=] {
      if (m->receive() || !looks) MODEL_ASSERT(m->letter() == 5);
    });
    model::at_end([=] { MODEL_ASSERT(m->letter() == 5); });  // after all threads, sees everything
  };
}

TEST(Mailbox, HandsOver) { model::expect_proved({}, mailbox(true)); }
TEST(MailboxPlanted, ReadsWithoutLooking) {
  model::expect_failure({}, mailbox(false), "data race");
}
TEST(MailboxPlanted, EveryWeakenedOrderIsCaught) {
  model::expect_every_order_matters({}, {mailbox(true)}, "mailbox_protocol.h", 2);
}

TEST(MailboxPlanted, TellsTheSteps) {
  EXPECT_EQ("\n" + model::explore({}, mailbox(false)).failure, R"(
data race: read by T2 and write by T1
  T1  a0.store(1, release)  (mailbox_protocol.h:13)
  T2  a0.load(acquire) = 0 [written by T0]  (mailbox_protocol.h:16)
)");
}

}  // namespace
