// Encoders: hidden states of a whole model against the reference implementation's, and texts in any company.
#include <cstdio>
#include <deque>
#include <string>

#include "backend_under_test.h"
#include "loaded_model.h"
#include "models/compare_for_test.h"

namespace chimere::parity {
namespace {

// All hidden states of texts that run in one batch.
std::vector<std::vector<float>> hidden_of(Executable& executable, const std::vector<std::span<const int32_t>>& texts) {
  std::deque<Sequence> sequences;
  std::vector<Part> parts;
  for (const std::span<const int32_t> text : texts) {
    sequences.push_back(new_sequence(executable));
    parts.emplace_back(&sequences.back(), text);
  }
  return step(executable, parts, RowValues::hidden);
}

LoadOptions encoder_options(bool exact) {
  LoadOptions options = options_for(exact, exact ? kFloatKv : kHalfKv);
  options.max_rows = 160;
  return options;
}

// The mean of all rows, which is what the fixture's model is pooled by.
std::vector<float> pooled(std::span<const float> hidden, size_t d) {
  std::vector<float> mean(d);
  for (size_t i = 0; i < hidden.size(); ++i) mean[i % d] += hidden[i] / static_cast<float>(hidden.size() / d);
  return mean;
}

void expect_hidden_states(CompileFunction compile, bool exact) {
  const fs::path folder = fixture::kept("bert-mean");
  auto arrays = fixture::read_arrays(folder);
  auto loaded = Loaded::open(folder, compile, encoder_options(exact));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_FALSE((*loaded)->program().has_logits());
  const auto d = static_cast<size_t>((*loaded)->program().d_model);
  for (const std::string length : {"48", "150"}) {
    // The longer text takes an emulator seconds: once, and not where addresses are checked.
    if (length == "150" && backend_under_test().is_emulated && (!exact || kSanitized)) continue;
    const auto expected = arrays["hidden_" + length].floats();
    const auto found = hidden_of(**loaded, {arrays["tokens_" + length].ints()})[0];
    const float difference = max_difference(found, expected);
    const double alike = cosine(pooled(found, d), pooled(expected, d));
    std::printf("    %s tokens, exact %d: difference %.1e, cosine of the means 1 - %.1e\n", length.c_str(), exact,
                difference, 1 - alike);
    if (exact) {
      EXPECT_LE(difference, 1e-4f) << length;
    }
    EXPECT_GE(alike, 0.9999) << length;
  }
}

TEST(Encoder, HiddenStatesMatchTheReferenceImplementation) {
  for (const CompileFunction compile : backend_and_oracle()) expect_hidden_states(compile, true);
  expect_hidden_states(backend_under_test().compile, false);
}

// Texts of both classes, and short ones a second time: a card then runs a graph.
TEST(Encoder, ATextIsTheSameAloneAndAmongOthers) {
  const fs::path folder = fixture::kept("bert-mean");
  auto arrays = fixture::read_arrays(folder);
  auto loaded = Loaded::open(folder, backend_under_test().compile, encoder_options(false));
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto tokens = arrays["tokens_150"].ints();
  std::vector<std::span<const int32_t>> texts;
  for (const size_t n : {1, 16, 17, 5, 65, 48}) texts.push_back(tokens.subspan(3 * texts.size(), n));
  const auto together = hidden_of(**loaded, texts);
  for (size_t i = 0; i < texts.size(); ++i) {
    for (int again = 0; again < (texts[i].size() == 5 ? 3 : 1); ++again) {
      EXPECT_EQ(hidden_of(**loaded, {texts[i]})[0], together[i]) << texts[i].size() << " tokens";
    }
  }
}

}  // namespace
}  // namespace chimere::parity
