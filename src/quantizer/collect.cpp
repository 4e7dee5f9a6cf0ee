#include "quantizer/collect.h"

#include <algorithm>

#include "cache/sequence.h"

namespace chimere::quantizer {
namespace {

// The name in the file: matrices made of some rows of a tensor have one of their own.
std::string file_name(const Program& program, std::string_view name) {
  for (const auto& owned : program.owned) {
    if (owned->name == name) return owned->source;
  }
  return std::string(name);
}

// A batch of these tokens alone whose hidden states, but no logits, are wanted: the head's inputs are then seen without
// multiplying a vocabulary.
Batch batch_of(const Slice& slice, std::span<const int32_t> tokens) {
  Batch batch;
  batch.slices.push_back(slice);
  batch.tokens.assign(tokens.begin(), tokens.end());
  for (size_t i = 0; i < tokens.size(); ++i) batch.logit_rows.push_back(static_cast<int32_t>(i));
  return batch;
}

}  // namespace

InputSums* InputCollector::sums_of(const MatrixInput& input) {
  const auto id = static_cast<size_t>(input.matrix);
  if (known_.size() <= id) {
    known_.resize(id + 1, nullptr);
    looked_up_.resize(id + 1, false);
  }
  if (looked_up_[id]) return known_[id];
  looked_up_[id] = true;
  const TensorView& tensor = input.program.matrices[id];
  InputSums& sums = statistics.matrices[file_name(input.program, tensor.name)];
  if (std::find(known_.begin(), known_.end(), &sums) != known_.end()) return nullptr;
  if (sums.sums.empty()) {
    sums.n_cols = static_cast<uint64_t>(input.width);
    sums.counts.assign(tensor.ne[2], 0.0);
    sums.sums.assign(sums.n_cols * tensor.ne[2], 0.0);
  }
  known_[id] = &sums;
  return known_[id];
}

void InputCollector::add(const MatrixInput& input) {
  InputSums* sums = sums_of(input);
  if (!sums) return;
  double* to = sums->sums.data() + static_cast<size_t>(input.expert) * sums->n_cols;
  for (int64_t r = 0; r < input.n_rows; ++r) {
    const int64_t row = input.which.empty() ? r : input.which[static_cast<size_t>(r)];
    const float* x = input.rows + row * input.width;
    for (int64_t i = 0; i < input.width; ++i) to[i] += static_cast<double>(x[i]) * x[i];
  }
  sums->counts[static_cast<size_t>(input.expert)] += static_cast<double>(input.n_rows);
}

Status read_window(models::Model& model, std::span<const int32_t> tokens) {
  Executable& executable = model.executable();
  TRY_ASSIGN(Sequence sequence, Sequence::create(executable));
  const auto d = static_cast<size_t>(model.d_model()), most = static_cast<size_t>(executable.prefill_rows());
  // Row t of a draft pass has the trunk's hidden state of the position before.
  std::vector<float> hidden, states(d, 0.0f);
  for (size_t at = 0; at < tokens.size();) {
    const auto part = tokens.subspan(at, std::min(most, tokens.size() - at));
    const auto n = static_cast<int>(part.size());
    TRY_ASSIGN(const Slice slice, sequence.begin(n));
    hidden.resize(part.size() * d);
    states.resize((part.size() + 1) * d);
    const bool drafts = model.has_drafts();
    TRY(executable.run(batch_of(slice, part),
                       {.hidden = hidden.data(), .row_hidden = drafts ? states.data() + d : nullptr}));
    TRY(sequence.commit(n));
    if (drafts) {
      TRY_ASSIGN(const Slice again, sequence.begin_pass(static_cast<int32_t>(at), n));
      Batch batch = batch_of(again, part);
      batch.draft_hidden = states.data();
      TRY(executable.run(batch, {.hidden = hidden.data()}));
      std::copy_n(states.end() - static_cast<std::ptrdiff_t>(d), d, states.begin());
    }
    at += part.size();
  }
  return Ok{};
}

void round_to_file(Statistics& statistics) {
  for (auto& [name, m] : statistics.matrices) {
    for (double& x : m.sums) x = static_cast<float>(x);
    for (double& x : m.counts) x = static_cast<float>(x);
  }
}

}  // namespace chimere::quantizer
