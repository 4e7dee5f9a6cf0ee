// score.h  One pass over given tokens, outside of any schedule: log-probabilities.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/model.h"
#include "sampling/memory_source.h"

namespace chimere::engine {

// Log-probability of tokens[i + 1] after tokens[0..i], for every i; natural logarithm.
// With a memory: of the mixture that would be drawn from; it sees the same as it would while these tokens are drawn.
// REQUIRES: ids inside the vocabulary.
Result<std::vector<float>> score_tokens(models::Model& model, std::span<const int32_t> tokens,
                                        MemorySource* memory = nullptr);

// The same of tokens[n_prompt..] alone; memory and adapters take part as they would while these are drawn behind the
// prompt. REQUIRES: 1 <= n_prompt <= tokens.size(), and the model's executable holds the adapters.
Result<std::vector<float>> score_answer(models::Model& model, std::span<const int32_t> tokens, size_t n_prompt,
                                        MemorySource* memory = nullptr, const AdapterSet* adapters = nullptr);

// Logits of every position: the last `n_steps` tokens are decoded one by one after a prefill of the rest. `row` is
// called once per position with n_vocab logits. REQUIRES: the model's executable holds the adapters.
Status all_logits(models::Model& model, std::span<const int32_t> tokens, int n_steps,
                  const std::function<void(std::span<const float>)>& row, const AdapterSet* adapters = nullptr);

// Little-endian int32 ids from a file, all inside the vocabulary.
Result<std::vector<int32_t>> read_ids(const std::string& path, int n_vocab);

// log(sum(exp(logits))) in double.
double log_sum_exp(std::span<const float> logits);
// Of the distribution that the logits are; `total` is their log_sum_exp.
double entropy_of(std::span<const float> logits, double total);

}  // namespace chimere::engine
