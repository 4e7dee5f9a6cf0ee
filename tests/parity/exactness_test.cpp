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

// A draft of which only the first tokens stay leaves no trace of the others, wherever it stands and however many stay,
// whether the first of them could be taken back or not.
TEST_P(Exactness, RollbackEqualsTheRunThatNeverWentThere) {
  constexpr int kAhead = 3;
  const int prompt = many_or_few(50, 17), n_steps = many_or_few(34, 4);
  const ExecutablePtr e = compile(1);
  ASSERT_TRUE(e);
  Sequence straight = new_sequence(*e);
  go_on(*e, straight, prompt);
  const std::vector<float> expected = run_in_slices(*e, straight, prompt, prompt + n_steps + kDecodeTokens + kAhead, 1);

  Sequence s = new_sequence(*e);
  go_on(*e, s, prompt);
  EXPECT_EQ(s.rollback_reach(), 0) << "nothing was drafted yet";
  EXPECT_FALSE(s.rollback(1));
  for (int at = 0; at < n_steps; ++at) {
    // Every length of a draft, and of each the numbers of tokens that stay in turn; at the ends of pages all of them.
    const int n_draft = at % many_or_few(kDecodeTokens, 3) + 1;
    const int page_end = (prompt + at + n_draft) % kPageTokens;
    const bool all = page_end < n_draft && !backend_under_test().is_emulated;
    for (int right = all ? 0 : at * 5 % (n_draft + 1); right <= n_draft; ++right) {
      SCOPED_TRACE("at " + std::to_string(at) + ", " + std::to_string(right) + " of " + std::to_string(n_draft));
      auto kept = s.snapshot();
      ASSERT_TRUE(kept);
      std::vector<int32_t> tokens = text(prompt + at, n_draft);
      for (int i = right; i < n_draft; ++i) tokens[i] = (tokens[i] + 1 + i) % Hybrid::kVocab;
      const bool is_certain = right > 0 && at % 3 > 0;
      const Part draft = is_certain ? Part::draft_behind(&s, tokens) : Part::draft(&s, tokens);
      const std::vector<float> verified = step(*e, {draft})[0];
      ASSERT_TRUE(same_logits(rows(verified, 0, right), rows(expected, at, right)));
      const bool is_split = is_certain && n_draft > 1 && e->splits_drafts();
      ASSERT_EQ(s.rollback_reach(), is_split ? n_draft - 1 : n_draft);
      ASSERT_TRUE(s.rollback(n_draft - right));
      ASSERT_EQ(s.length(), prompt + at + right);
      if (right < n_draft) {
        EXPECT_FALSE(s.rollback(1)) << "once";
      }
      ASSERT_TRUE(same_logits(run_in_slices(*e, s, prompt + at + right, prompt + at + right + kAhead, 1),
                              rows(expected, at + right, kAhead)));
      EXPECT_FALSE(s.rollback(1)) << "the last slice was no draft";
      ASSERT_TRUE(s.restore(*kept));
      if (!all) break;
    }
    ASSERT_TRUE(same_logits(go_on(*e, s, 1), rows(expected, at, 1)));
  }
}

// Sequences that draft and go back share batches with one that does not, and with a prompt.
TEST_P(Exactness, DraftsChangeNothingForTheirCompany) {
  const int prompt = many_or_few(40, 17), n_steps = many_or_few(24, 3);
  const ExecutablePtr e = compile(1);
  ASSERT_TRUE(e);
  std::vector<std::vector<float>> expected;
  for (int script = 0; script < 3; ++script) {
    Sequence straight = new_sequence(*e);
    go_on(*e, straight, prompt, script);
    const int n = n_steps * (script == 2 ? 1 : 8);
    expected.push_back(feed(*e, straight, text(prompt, n, script), {1}));
  }
  std::vector<Sequence> s;
  for (int i = 0; i < 3; ++i) s.push_back(new_sequence(*e));
  for (int i = 0; i < 3; ++i) go_on(*e, s[i], prompt, i);
  for (int at = 0; at < n_steps; ++at) {
    SCOPED_TRACE("at " + std::to_string(at));
    std::vector<Part> parts;
    std::vector<int> right, begin;
    for (int i = 0; i < 2; ++i) {
      const int n_draft = 1 + (at * 3 + i * 5) % 8;
      right.push_back(1 + (at + i) % n_draft);
      begin.push_back(s[i].length());
      std::vector<int32_t> tokens = text(s[i].length(), n_draft, i);
      for (int t = right[i]; t < n_draft; ++t) tokens[t] = (tokens[t] + 1 + t) % Hybrid::kVocab;
      parts.push_back(i == 0 ? Part::draft(&s[i], tokens) : Part::draft_behind(&s[i], tokens));
    }
    parts.push_back({&s[2], text(s[2].length(), 1, 2)});
    Sequence reader = new_sequence(*e);
    if (at % 3 == 1) parts.push_back({&reader, text(0, 18, 3)});
    const std::vector<std::vector<float>> found = step(*e, parts);
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(same_logits(rows(found[i], 0, right[i]), rows(expected[i], begin[i] - prompt, right[i])));
      ASSERT_TRUE(s[i].rollback(static_cast<int>(parts[i].tokens.size()) - right[i]));
    }
    ASSERT_TRUE(same_logits(found[2], rows(expected[2], at, 1)));
  }
}

INSTANTIATE_TEST_SUITE_P(Kv, Exactness, testing::ValuesIn(variants()), variant_name);

}  // namespace
}  // namespace chimere::parity
