// Going back from drafts, in every architecture with a recurrent state: at every position of a text, the run that went
// back goes on with the bits of the run that never went there.
#include <gtest/gtest.h>

#include "models/compare_for_test.h"
#include "models/fixture_for_test.h"
#include "models/runs_for_test.h"
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
  constexpr int kPrompt = 5, kEnd = 140, kAhead = 2;  // across two ends of pages
  Executable& e = model_->executable();
  const auto v = static_cast<size_t>(model_->n_vocab());
  std::vector<int32_t> tokens;
  for (int i = 0; i < kEnd + kDecodeTokens + kAhead; ++i) tokens.push_back((i * 37 + i * i % 11) % model_->n_vocab());
  const std::span<const int32_t> text(tokens);
  const auto rows = [&](const std::vector<float>& logits, int begin, int n) {
    return std::span(logits).subspan(static_cast<size_t>(begin) * v, static_cast<size_t>(n) * v);
  };

  Sequence straight = new_sequence(e), s = new_sequence(e);
  feed(e, straight, text.first(kPrompt), {kPrompt});
  const std::vector<float> expected = feed(e, straight, text.subspan(kPrompt), {1});
  feed(e, s, text.first(kPrompt), {kPrompt});
  for (int at = kPrompt; at < kEnd; ++at) {
    // Every length of a draft with every number of tokens that stay, in turn.
    const int n_draft = 1 + at % kDecodeTokens, right = at * 7 % (n_draft + 1);
    SCOPED_TRACE(std::to_string(right) + " of " + std::to_string(n_draft) + " at " + std::to_string(at));
    auto kept = s.snapshot();
    ASSERT_TRUE(kept);
    for (const bool is_certain : {false, true}) {
      if (is_certain && right == 0) continue;
      std::vector<int32_t> draft(tokens.begin() + at, tokens.begin() + at + n_draft);
      for (int i = right; i < n_draft; ++i) {
        int32_t& wrong = draft[static_cast<size_t>(i)];
        wrong = (wrong + 1 + i) % model_->n_vocab();
      }
      const Part part = is_certain ? Part::draft_behind(&s, draft) : Part::draft(&s, draft);
      const std::vector<float> found = step(e, {part})[0];
      ASSERT_TRUE(same_bits(rows(found, 0, right), rows(expected, at - kPrompt, right), v));
      ASSERT_TRUE(s.rollback(n_draft - right));
      ASSERT_EQ(s.length(), at + right);
      const std::vector<float> ahead = feed(e, s, text.subspan(static_cast<size_t>(at + right), kAhead), {1});
      ASSERT_TRUE(same_bits(ahead, rows(expected, at - kPrompt + right, kAhead), v));
      ASSERT_TRUE(s.restore(*kept));
    }
    ASSERT_TRUE(
        same_bits(feed(e, s, text.subspan(static_cast<size_t>(at), 1), {1}), rows(expected, at - kPrompt, 1), v));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Rollback, testing::ValuesIn(fixture::recurrent_models()), fixture::recurrent_name);

}  // namespace
}  // namespace chimere
