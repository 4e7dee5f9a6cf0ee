// rollback_for_test.h  Going back from drafts, position by position: the run that went back goes on with the bits of the
// run that never went there.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "models/compare_for_test.h"
#include "models/model.h"
#include "models/runs_for_test.h"

namespace chimere {

// From drafts of every length at positions [begin, end) of a text, each with every number of tokens that stay in turn.
inline void expect_no_trace_of_drafts(models::Model& model, int begin, int end) {
  constexpr int kAhead = 2;
  Executable& e = model.executable();
  const auto v = static_cast<size_t>(model.n_vocab());
  const auto draft_at = [](int at) { return 1 + at % kDecodeTokens; };
  const auto right_at = [&](int at) { return at * 7 % (draft_at(at) + 1); };
  std::vector<int32_t> tokens;
  for (int i = 0; i < end + kDecodeTokens + kAhead; ++i) tokens.push_back((i * 37 + i * i % 11) % model.n_vocab());
  int n_known = 0;  // tokens of the text that the straight run reads
  for (int at = begin; at < end; ++at) n_known = std::max(n_known, at + right_at(at) + kAhead);
  const std::span<const int32_t> text(tokens);
  const auto rows = [&](const std::vector<float>& logits, int first, int n) {
    return std::span(logits).subspan(static_cast<size_t>(first) * v, static_cast<size_t>(n) * v);
  };

  Sequence straight = new_sequence(e), s = new_sequence(e);
  feed(e, straight, text.first(static_cast<size_t>(begin)), {begin});
  const std::vector<float> expected =
      feed(e, straight, text.subspan(static_cast<size_t>(begin), static_cast<size_t>(n_known - begin)), {1});
  feed(e, s, text.first(static_cast<size_t>(begin)), {begin});
  for (int at = begin; at < end; ++at) {
    const int n_draft = draft_at(at), right = right_at(at);
    SCOPED_TRACE(std::to_string(right) + " of " + std::to_string(n_draft) + " at " + std::to_string(at));
    auto kept = s.snapshot();
    ASSERT_TRUE(kept);
    for (const bool is_certain : {false, true}) {
      if (is_certain && right == 0) continue;
      std::vector<int32_t> draft(tokens.begin() + at, tokens.begin() + at + n_draft);
      for (int i = right; i < n_draft; ++i) {
        int32_t& wrong = draft[static_cast<size_t>(i)];
        wrong = (wrong + 1 + i) % model.n_vocab();
      }
      const Part part = is_certain ? Part::draft_behind(&s, draft) : Part::draft(&s, draft);
      const std::vector<float> found = step(e, {part})[0];
      ASSERT_TRUE(same_bits(rows(found, 0, right), rows(expected, at - begin, right), v));
      ASSERT_TRUE(s.rollback(n_draft - right));
      ASSERT_EQ(s.length(), at + right);
      const std::vector<float> ahead = feed(e, s, text.subspan(static_cast<size_t>(at + right), kAhead), {1});
      ASSERT_TRUE(same_bits(ahead, rows(expected, at - begin + right, kAhead), v));
      ASSERT_TRUE(s.restore(*kept));
    }
    ASSERT_TRUE(same_bits(feed(e, s, text.subspan(static_cast<size_t>(at), 1), {1}), rows(expected, at - begin, 1), v));
  }
}

}  // namespace chimere
