// The numbers contract on whole hybrid models, with 8-bit activations: equal to the last bit, not nearly.
#include "exactness.h"

namespace chimere::parity {
namespace {

class Exactness : public HybridTest {};

// (a) Decode class: neither the number of tokens in a slice nor the threads change a bit. From one page into the next,
// and across 256 tokens of context, from where on attention joins pieces of it.
TEST_P(Exactness, DecodeSlicesGiveTheBitsOfSingleTokens) {
  const bool emulated = backend_under_test().is_emulated;
  using Spans = std::vector<std::pair<int, int>>;
  const Spans spans = emulated ? Spans{{17, 23}} : Spans{{41, 89}, {235, 268}};
  for (const auto& [prompt, end] : spans) {
    const ExecutablePtr one = compile(1);
    ASSERT_TRUE(one);
    Sequence straight = new_sequence(*one);
    const std::vector<float> first = go_on(*one, straight, prompt);
    const std::vector<float> expected = run_in_slices(*one, straight, prompt, end, 1);
    for (int n_threads : emulated ? std::vector{1} : std::vector{1, 2, 3}) {
      const ExecutablePtr e = compile(n_threads);
      ASSERT_TRUE(e);
      for (int n = n_threads == 1 ? 2 : 1; n <= many_or_few(kDecodeTokens, 5);
           n += n_threads == 1 ? many_or_few(1, 3) : 5) {
        Sequence s = new_sequence(*e);
        EXPECT_TRUE(same_logits(go_on(*e, s, prompt), first)) << n_threads << " threads";
        EXPECT_TRUE(same_logits(run_in_slices(*e, s, prompt, end, n), expected))
            << "slices of " << n << " from " << prompt << ", " << n_threads << " threads";
      }
    }
  }
}

// (a) and (b): a sequence alone, and among others that prefill and decode in the same batches.
TEST_P(Exactness, CompanyChangesNothing) {
  const bool emulated = backend_under_test().is_emulated;
  const std::vector<int> cuts = emulated ? std::vector{18, 1, 5} : std::vector{70, 1, 1, 16, 3, 58, 1, 17, 2};
  const ExecutablePtr one = compile(1);
  ASSERT_TRUE(one);
  std::vector<float> expected;
  Sequence straight = new_sequence(*one);
  for (int n : cuts) append_rows(expected, go_on(*one, straight, n));
  for (int n_threads : emulated ? std::vector{1} : std::vector{1, 2, 3}) {
    const ExecutablePtr e = compile(n_threads);
    ASSERT_TRUE(e);
    for (int place : emulated ? std::vector{1} : std::vector{0, 1, 2}) {
      std::vector<float> found;
      Sequence s = new_sequence(*e), other = new_sequence(*e), third = new_sequence(*e);
      for (size_t i = 0; i < cuts.size(); ++i) {
        std::vector<Part> parts = {{&other, text(other.length(), i % 2 == 0 ? 1 : many_or_few(37, 19), 1)},
                                   {&third, text(third.length(), i % 3 == 0 ? 16 : 2, 2)}};
        parts.insert(parts.begin() + place, {&s, text(s.length(), cuts[i])});
        append_rows(found, step(*e, parts)[place]);
      }
      EXPECT_TRUE(same_logits(found, expected)) << "place " << place << ", " << n_threads << " threads";
    }
  }
}

// A rejected draft of up to 8 tokens leaves no trace, wherever it happened.
TEST_P(Exactness, RollbackEqualsTheRunThatNeverWentThere) {
  constexpr int kAhead = 5, kWindow = 8;
  const int prompt = many_or_few(50, 17), n_steps = many_or_few(34, 2);
  const ExecutablePtr e = compile(1);
  ASSERT_TRUE(e);
  Sequence straight = new_sequence(*e);
  go_on(*e, straight, prompt);
  const std::vector<float> expected = run_in_slices(*e, straight, prompt, prompt + n_steps + kAhead, 1);

  Sequence s = new_sequence(*e, kWindow);
  go_on(*e, s, prompt);
  EXPECT_EQ(s.rollback_reach(), 0) << "nothing was decoded yet";
  EXPECT_FALSE(s.rollback(1));
  for (int at = 0; at < n_steps; ++at) {
    SCOPED_TRACE("at " + std::to_string(at));
    for (int draft : {1 + at % kWindow, kWindow}) {
      // The first `right` tokens of the draft are those of the text, the rest are not.
      const int right = (at + draft) % draft;
      std::vector<int32_t> tokens = text(prompt + at, draft);
      for (int i = right; i < draft; ++i) tokens[i] = (tokens[i] + 1 + i) % Hybrid::kVocab;
      const std::vector<float> verified = feed(*e, s, tokens, {draft});
      ASSERT_TRUE(same_logits(rows(verified, 0, right), rows(expected, at, right)));
      ASSERT_GE(s.rollback_reach(), draft);
      ASSERT_TRUE(s.rollback(draft - right));
      ASSERT_EQ(s.length(), prompt + at + right);
      const int ahead = kAhead - right;
      if (ahead > 0) {
        ASSERT_TRUE(same_logits(run_in_slices(*e, s, prompt + at + right, prompt + at + kAhead, 1),
                                rows(expected, at + right, ahead)));
        ASSERT_TRUE(s.rollback(kAhead));
      } else {
        ASSERT_TRUE(s.rollback(right));
      }
      ASSERT_EQ(s.length(), prompt + at);
    }
    ASSERT_TRUE(same_logits(go_on(*e, s, 1), rows(expected, at, 1)));
  }
  const auto too_far = s.rollback(s.rollback_reach() + 1);
  ASSERT_FALSE(too_far);
}

INSTANTIATE_TEST_SUITE_P(Kv, Exactness, testing::ValuesIn(variants()), variant_name);

}  // namespace
}  // namespace chimere::parity
