#include "improve/mezo/own_text.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/philox.h"
#include "cache/sequence.h"
#include "improve/mezo/rows.h"

namespace chimere::improve {
namespace {

constexpr int kTextTokens = 96;
constexpr int kTogether = 16;

// The token where the running sum of probabilities passes u.
int32_t drawn_from(std::span<const float> logits, double u) {
  const double total = log_sum(logits);
  double sum = 0;
  for (size_t v = 0; v < logits.size(); ++v) {
    sum += std::exp(logits[v] - total);
    if (sum >= u) return static_cast<int32_t>(v);
  }
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

double uniform(uint64_t seed, uint64_t text, uint64_t at) {
  return (philox(hash_mix(seed + 0x0e), text, at)[0] >> 8) * 0x1p-24;
}

// All but the last token, which begins the first step.
Status read_beginning(models::Model& model, Sequence& sequence, std::span<const int32_t> tokens) {
  for (size_t at = 0; at < tokens.size();) {
    const size_t n = std::min(tokens.size() - at, static_cast<size_t>(model.executable().prefill_rows()));
    Batch batch;
    TRY_ASSIGN(Slice slice, sequence.begin(static_cast<int>(n)));
    batch.slices.push_back(slice);
    batch.tokens.assign(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                        tokens.begin() + static_cast<std::ptrdiff_t>(at + n));
    TRY(model.executable().run(batch, {}));
    TRY(sequence.commit(static_cast<int>(n)));
    at += n;
  }
  return Ok{};
}

}  // namespace

Result<std::vector<Example>> write_own_text(models::Model& model, int n_tokens, uint64_t seed,
                                            std::span<const int32_t> beginning) {
  const int n_texts = (n_tokens + kTextTokens - 1) / kTextTokens;
  const auto v = static_cast<size_t>(model.n_vocab());
  std::vector<Example> texts(static_cast<size_t>(n_texts));
  std::vector<float> logits;
  for (int first = 0; first < n_texts; first += kTogether) {
    const int n = std::min({kTogether, n_texts - first, model.executable().max_rows()});
    std::vector<Sequence> sequences;
    for (int i = 0; i < n; ++i) {
      TRY_ASSIGN(Sequence sequence, Sequence::create(model.executable()));
      sequences.push_back(std::move(sequence));
      Example& text = texts[static_cast<size_t>(first + i)];
      text.is_kept = true;
      if (beginning.empty()) {
        text.tokens.push_back(static_cast<int32_t>(uniform(seed, first + i, 0) * model.n_vocab()));
      } else {
        text.tokens.assign(beginning.begin(), beginning.end());
        text.answer_from = static_cast<int32_t>(beginning.size());
        TRY(read_beginning(model, sequences.back(), beginning.first(beginning.size() - 1)));
      }
    }
    logits.resize(static_cast<size_t>(n) * v);
    for (int at = 1; at <= kTextTokens; ++at) {
      Batch batch;
      for (int i = 0; i < n; ++i) {
        TRY_ASSIGN(Slice slice, sequences[static_cast<size_t>(i)].begin(1));
        slice.first_row = i;
        batch.slices.push_back(slice);
        batch.tokens.push_back(texts[static_cast<size_t>(first + i)].tokens.back());
        batch.logit_rows.push_back(i);
      }
      TRY(model.executable().run(batch, {.logits = logits.data()}));
      for (int i = 0; i < n; ++i) {
        TRY(sequences[static_cast<size_t>(i)].commit(1));
        const auto row = std::span<const float>(logits).subspan(static_cast<size_t>(i) * v, v);
        texts[static_cast<size_t>(first + i)].tokens.push_back(drawn_from(row, uniform(seed, first + i, at)));
      }
    }
  }
  return Result<std::vector<Example>>{std::move(texts)};
}

}  // namespace chimere::improve
