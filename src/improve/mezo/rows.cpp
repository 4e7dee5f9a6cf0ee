#include "improve/mezo/rows.h"

#include <algorithm>
#include <cmath>

#include "cache/sequence.h"

namespace chimere::improve {
namespace {

// Logits of a batch are held at once.
constexpr int64_t kMaxBatchLogits = int64_t{1} << 24;

// A reading under way: so many of its tokens have been run.
struct Cursor {
  size_t reading;
  Sequence sequence;
  size_t done = 0;
};

// The last token is only an answer, never an input.
size_t n_inputs(const Reading& r) { return r.example->tokens.size() - 1; }

size_t n_logits(const Reading& r, size_t from, size_t to) {
  const auto first = static_cast<size_t>(r.example->answer_from) - 1;
  return to > std::max(first, from) ? to - std::max(first, from) : 0;
}

}  // namespace

double log_sum(std::span<const float> logits) {
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float l : logits) sum += std::exp(l - top);
  return std::log(sum) + top;
}

double divergence(std::span<const float> p, std::span<const float> q) {
  const double p_sum = log_sum(p), q_sum = log_sum(q);
  double total = 0;
  for (size_t v = 0; v < p.size(); ++v) {
    const double log_p = p[v] - p_sum;
    if (log_p > -30) total += std::exp(log_p) * (log_p - (q[v] - q_sum));
  }
  return total;
}

Result<uint64_t> read_examples(models::Model& model, std::span<const Reading> readings, bool with_hidden,
                               const std::function<void(const AnswerRow&)>& row) {
  TRY(model.require_logits());
  Executable& executable = model.executable();
  const auto v = static_cast<size_t>(model.n_vocab()), d = static_cast<size_t>(model.d_model());
  const auto max_rows = static_cast<size_t>(executable.max_rows());
  const auto longest = static_cast<size_t>(executable.prefill_rows());
  const size_t max_logits = std::max<size_t>(1, static_cast<size_t>(kMaxBatchLogits) / v);
  // A piece of an example never asks for more logits than a batch may have.
  const size_t piece = std::min(longest, max_logits);
  std::vector<float> logits, hidden;
  uint64_t n_tokens = 0;
  size_t next = 0;
  std::optional<Cursor> rest;  // of an example that is longer than a piece
  struct Placed {
    size_t reading, at;
  };
  while (next < readings.size() || rest) {
    Batch batch;
    std::vector<Placed> placed;
    std::vector<Cursor> running;
    while (next < readings.size() || rest) {
      const size_t reading = rest ? rest->reading : next, from = rest ? rest->done : 0;
      const Reading& r = readings[reading];
      const size_t n = std::min(piece, n_inputs(r) - from), n_out = n_logits(r, from, from + n);
      if (!batch.tokens.empty() &&
          (batch.tokens.size() + n > max_rows || batch.logit_rows.size() + n_out > max_logits)) {
        break;
      }
      if (!rest) {
        TRY_ASSIGN(Sequence sequence, Sequence::create(executable));
        rest.emplace(Cursor{reading, std::move(sequence)});
        ++next;
      }
      TRY_ASSIGN(Slice slice, rest->sequence.begin(static_cast<int>(n)));
      slice.first_row = batch.n_rows();
      slice.adapters = r.adapters;
      batch.slices.push_back(slice);
      for (size_t i = from; i < from + n; ++i) {
        if (i + 1 >= static_cast<size_t>(r.example->answer_from)) {
          batch.logit_rows.push_back(batch.n_rows());
          placed.push_back({reading, i + 1});
        }
        batch.tokens.push_back(r.example->tokens[i]);
      }
      rest->done = from + n;
      running.push_back(std::move(*rest));
      rest.reset();
      if (running.back().done < n_inputs(r)) break;  // a sequence is in a batch once
    }
    logits.resize(batch.logit_rows.size() * v);
    if (with_hidden) hidden.resize(batch.logit_rows.size() * d);
    TRY(executable.run(batch, {.logits = logits.data(), .hidden = with_hidden ? hidden.data() : nullptr}));
    n_tokens += batch.tokens.size();
    for (size_t i = 0; i < running.size(); ++i) TRY(running[i].sequence.commit(batch.slices[i].n_tokens));
    if (running.back().done < n_inputs(readings[running.back().reading])) rest.emplace(std::move(running.back()));
    for (size_t i = 0; i < placed.size(); ++i) {
      AnswerRow answer{placed[i].reading, placed[i].at, std::span(logits).subspan(i * v, v), {}};
      if (with_hidden) answer.hidden = std::span<const float>(hidden).subspan(i * d, d);
      row(answer);
    }
  }
  return n_tokens;
}

Status check_examples(const models::Model& model, std::span<const Example> examples) {
  const auto wrong = [](size_t i, const std::string& what) {
    return Error{Code::invalid_argument, "example " + std::to_string(i + 1) + ": " + what};
  };
  if (examples.empty()) return Error{Code::invalid_argument, "expected examples to learn from, found none"};
  if (examples.size() > kMaxExamples) {
    return Error{Code::exhausted, "expected at most " + std::to_string(kMaxExamples) + " examples, found " +
                                      std::to_string(examples.size())};
  }
  bool is_any_learned = false;
  for (size_t i = 0; i < examples.size(); ++i) {
    const Example& e = examples[i];
    if (e.tokens.size() > kMaxExampleTokens) {
      return wrong(i, "expected at most " + std::to_string(kMaxExampleTokens) + " tokens, found " +
                          std::to_string(e.tokens.size()));
    }
    if (e.answer_from < 1 || static_cast<size_t>(e.answer_from) >= e.tokens.size()) {
      return wrong(i, "expected a token before the answer and one in it; it begins at " +
                          std::to_string(e.answer_from) + " of " + std::to_string(e.tokens.size()));
    }
    if (!(e.weight > 0) || !(e.weight <= 1000)) {
      return wrong(i, "expected a weight above 0 and up to 1000, found " + std::to_string(e.weight));
    }
    for (const int32_t id : e.tokens) {
      if (id < 0 || id >= model.n_vocab()) {
        return wrong(
            i, "token " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(model.n_vocab()));
      }
    }
    is_any_learned |= !e.is_kept;
  }
  if (!is_any_learned) return Error{Code::invalid_argument, "all examples are to be kept as they are, none is learned"};
  return Ok{};
}

}  // namespace chimere::improve
