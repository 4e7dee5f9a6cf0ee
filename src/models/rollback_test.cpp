// Going back from drafts, in every architecture with a recurrent state: at every position of a text, the run that went
// back goes on with the bits of the run that never went there.
#include <gtest/gtest.h>

#include "models/fixture_for_test.h"
#include "models/rollback_for_test.h"
#include "models/tiny_recurrent_for_test.h"

namespace chimere {
namespace {

class Rollback : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto folder = fixture::recurrent_folder(GetParam());
    model_ = fixture::load(folder, models::BackendKind::cpu, false, kHalfKv, 1);
    ASSERT_TRUE(model_);
    ASSERT_GT(model_->executable().layout().recurrent_floats(), 0);
  }

  std::unique_ptr<models::Model> model_;
};

TEST_P(Rollback, AtEveryPositionItLeavesNoTrace) {
  constexpr int kPrompt = 5, kEnd = 140;  // across two ends of pages
  expect_no_trace_of_drafts(*model_, kPrompt, kEnd);
}

INSTANTIATE_TEST_SUITE_P(Models, Rollback, testing::ValuesIn(fixture::recurrent_models()), fixture::recurrent_name);

}  // namespace
}  // namespace chimere
