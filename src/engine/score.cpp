#include "engine/score.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "cache/sequence.h"

namespace chimere::engine {
namespace {

// Logits of a whole slice are held at once: with a large vocabulary, slices are shorter.
int slice_for(const models::Model& model, int max_rows) {
  constexpr int64_t kMaxLogits = int64_t{1} << 24;
  const int64_t rows = kMaxLogits / std::max(1, model.n_vocab()) / kChunkTokens * kChunkTokens;
  return static_cast<int>(std::clamp<int64_t>(rows, 1, max_rows));
}

// A batch of these tokens alone, with outputs for every row.
Result<Batch> next_slice(Sequence& sequence, std::span<const int32_t> tokens, const AdapterSet* adapters) {
  Batch batch;
  TRY_ASSIGN(Slice slice, sequence.begin(static_cast<int>(tokens.size())));
  slice.adapters = adapters;
  batch.slices.push_back(slice);
  batch.tokens.assign(tokens.begin(), tokens.end());
  for (size_t i = 0; i < tokens.size(); ++i) batch.logit_rows.push_back(static_cast<int32_t>(i));
  return Result<Batch>{std::move(batch)};
}

}  // namespace

double log_sum_exp(std::span<const float> logits) {
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float l : logits) sum += std::exp(static_cast<double>(l) - top);
  return std::log(sum) + top;
}

double entropy_of(std::span<const float> logits, double total) {
  double sum = 0;
  for (const float logit : logits) {
    const double logprob = logit - total;
    if (logprob > -80) sum -= logprob * std::exp(logprob);
  }
  return sum;
}

Result<std::vector<float>> score_tokens(models::Model& model, std::span<const int32_t> tokens, MemorySource* memory) {
  if (tokens.size() < 2) return std::vector<float>{};
  return score_answer(model, tokens, 1, memory);
}

Result<std::vector<float>> score_answer(models::Model& model, std::span<const int32_t> tokens, size_t n_prompt,
                                        MemorySource* memory, const AdapterSet* adapters) {
  std::vector<float> logprobs;
  if (tokens.size() <= n_prompt) return Result<std::vector<float>>{std::move(logprobs)};
  size_t next = 0;
  const auto score_row = [&](std::span<const float> row) {
    if (++next < n_prompt) return;
    const double total = log_sum_exp(row);
    Sampled taken;
    taken.id = tokens[next];
    taken.logprob = static_cast<float>(row[taken.id] - total);
    if (memory) {
      const std::span<const MemoryEntry> entries = memory->expect(tokens.first(next), false);
      logprobs.push_back(static_cast<float>(mixed_logprob(taken.logprob, taken.id, entries)));
      taken.entropy = static_cast<float>(entropy_of(row, total));
      memory->accept(taken);
    } else {
      logprobs.push_back(taken.logprob);
    }
  };
  TRY(all_logits(model, tokens.first(tokens.size() - 1), 0, score_row, adapters));
  return Result<std::vector<float>>{std::move(logprobs)};
}

Status all_logits(models::Model& model, std::span<const int32_t> tokens, int n_steps,
                  const std::function<void(std::span<const float>)>& row, const AdapterSet* adapters) {
  TRY(model.require_logits());
  TRY_ASSIGN(Sequence sequence, Sequence::create(model.executable()));
  const size_t n_prefill = tokens.size() - n_steps, v = model.n_vocab();
  const size_t slice_tokens = slice_for(model, model.executable().prefill_rows());
  std::vector<float> logits;
  for (size_t at = 0; at < tokens.size();) {
    const size_t n = at < n_prefill ? std::min(slice_tokens, n_prefill - at) : 1;
    TRY_ASSIGN(const Batch batch, next_slice(sequence, tokens.subspan(at, n), adapters));
    logits.resize(n * v);
    TRY(model.executable().run(batch, {.logits = logits.data()}));
    TRY(sequence.commit(static_cast<int>(n)));
    for (size_t i = 0; i < n; ++i) row(std::span(logits).subspan(i * v, v));
    at += n;
  }
  return Ok{};
}

Result<std::vector<int32_t>> read_ids(const std::string& path, int n_vocab) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Code::io, path + ": can not be opened"};
  const std::vector<char> bytes(std::istreambuf_iterator<char>(in), {});
  if (bytes.empty() || bytes.size() % 4 != 0) {
    return Error{Code::invalid_argument,
                 path + ": expected little-endian int32 ids, found " + std::to_string(bytes.size()) + " bytes"};
  }
  std::vector<int32_t> ids(bytes.size() / 4);
  std::memcpy(ids.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= n_vocab) {
      return Error{Code::invalid_argument, path + ": id " + std::to_string(ids[i]) + " at index " + std::to_string(i) +
                                               " is outside the vocabulary of " + std::to_string(n_vocab)};
    }
  }
  return Result<std::vector<int32_t>>{std::move(ids)};
}

}  // namespace chimere::engine
