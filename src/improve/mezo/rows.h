// rows.h  Forward passes over examples: logits of their answer tokens, through the batches that serve requests.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backend/adapter.h"
#include "improve/mezo/trainer.h"

namespace chimere::improve {

// One example under some adapters.
struct Reading {
  const Example* example;
  const AdapterSet* adapters = nullptr;  // null: none
};

// What the model says before answer token `at` (an index into the tokens) of readings[reading].
struct AnswerRow {
  size_t reading;
  size_t at;
  std::span<const float> logits;  // [n_vocab]
  std::span<const float> hidden;  // [d_model]; empty unless wanted
};

// Calls `row` for every answer token, those of a reading in order. Readings share batches. Returns the tokens that went
// through the network.
Result<uint64_t> read_examples(models::Model& model, std::span<const Reading> readings, bool with_hidden,
                               const std::function<void(const AnswerRow&)>& row);

// Logits to log-probabilities; the sum is in double.
double log_sum(std::span<const float> logits);

// sum_v p(v) (log p(v) - log q(v)), p and q given by logits.
double divergence(std::span<const float> p, std::span<const float> q);

Status check_examples(const models::Model& model, std::span<const Example> examples);

}  // namespace chimere::improve
