// runs_for_test.h  Batches of several sequences on any executable: begun, run and committed, with what came out.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backend/adapter.h"
#include "backend/backend.h"
#include "cache/sequence.h"

namespace chimere {

using ExecutablePtr = std::unique_ptr<Executable>;
using CompileFunction = Result<ExecutablePtr> (*)(Program, const LoadOptions&);

inline constexpr KvFormat kFloatKv{DType::F32, DType::F32, false};
inline constexpr KvFormat kHalfKv{DType::F16, DType::F16, false};

inline ExecutablePtr compiled(Result<ExecutablePtr> result) {
  EXPECT_TRUE(result) << result.error().message;
  return result ? std::move(*result) : nullptr;
}

inline Sequence new_sequence(Executable& executable) {
  auto sequence = Sequence::create(executable);
  EXPECT_TRUE(sequence) << sequence.error().message;
  return std::move(*sequence);
}

// Tokens that one sequence brings to a batch.
struct Part {
  Part(Sequence* its_sequence, std::span<const int32_t> its_tokens, const AdapterSet* its_adapters = nullptr)
      : sequence(its_sequence), tokens(its_tokens.begin(), its_tokens.end()), adapters(its_adapters) {}

  Sequence* sequence;
  std::vector<int32_t> tokens;
  const AdapterSet* adapters;
  int32_t second_kind_at = INT32_MAX;
  bool is_draft = false;    // may be taken back
  bool is_certain = false;  // but for its first token

  static Part draft(Sequence* its_sequence, std::span<const int32_t> its_tokens,
                    const AdapterSet* its_adapters = nullptr) {
    Part part(its_sequence, its_tokens, its_adapters);
    part.is_draft = true;
    return part;
  }
  // Whose first token stays.
  static Part draft_behind(Sequence* its_sequence, std::span<const int32_t> its_tokens) {
    Part part = draft(its_sequence, its_tokens);
    part.is_certain = true;
    return part;
  }
};

// A batch of all parts that asks for every row.
inline Batch begin_batch(const std::vector<Part>& parts) {
  Batch batch;
  for (const Part& part : parts) {
    const int n = static_cast<int>(part.tokens.size());
    auto slice = part.is_draft ? part.sequence->begin_draft(n, part.is_certain) : part.sequence->begin(n);
    EXPECT_TRUE(slice) << slice.error().message;
    slice->first_row = batch.n_rows();
    slice->adapters = part.adapters;
    slice->second_kind_at = part.second_kind_at;
    batch.slices.push_back(*slice);
    for (int32_t token : part.tokens) {
      batch.logit_rows.push_back(batch.n_rows());
      batch.tokens.push_back(token);
    }
  }
  return batch;
}

inline void commit_batch(const std::vector<Part>& parts) {
  for (const Part& part : parts) EXPECT_TRUE(part.sequence->commit(static_cast<int>(part.tokens.size())));
}

enum class RowValues { logits, hidden };

// Runs and commits one batch of all parts; the values of every row, part by part.
inline std::vector<std::vector<float>> step(Executable& executable, const std::vector<Part>& parts,
                                            RowValues wanted = RowValues::logits) {
  const Batch batch = begin_batch(parts);
  const Program& program = executable.program();
  const bool hidden = wanted == RowValues::hidden;
  const auto width = static_cast<size_t>(hidden ? program.d_model : program.n_vocab);
  std::vector<float> values(batch.tokens.size() * width);
  const Status done =
      executable.run(batch, hidden ? Outputs{.hidden = values.data()} : Outputs{.logits = values.data()});
  EXPECT_TRUE(done) << done.error().message;
  commit_batch(parts);
  std::vector<std::vector<float>> out;
  auto at = values.begin();
  for (const Part& part : parts) {
    const auto end = at + static_cast<std::ptrdiff_t>(part.tokens.size() * width);
    out.emplace_back(at, end);
    at = end;
  }
  return out;
}

inline void append_rows(std::vector<float>& to, std::span<const float> more) {
  to.insert(to.end(), more.begin(), more.end());
}

// The logits of every token, in slices of the lengths given, the last of which repeats.
inline std::vector<float> feed(Executable& executable, Sequence& sequence, std::span<const int32_t> tokens,
                               const std::vector<int>& lengths, const AdapterSet* adapters = nullptr) {
  std::vector<float> logits;
  for (size_t at = 0, i = 0; at < tokens.size(); ++i) {
    const size_t n = std::min<size_t>(lengths[std::min(i, lengths.size() - 1)], tokens.size() - at);
    append_rows(logits, step(executable, {Part(&sequence, tokens.subspan(at, n), adapters)})[0]);
    at += n;
  }
  return logits;
}

// The same of a sequence of their own.
inline std::vector<float> feed_alone(Executable& executable, std::span<const int32_t> tokens,
                                     const std::vector<int>& lengths, const AdapterSet* adapters = nullptr) {
  Sequence sequence = new_sequence(executable);
  return feed(executable, sequence, tokens, lengths, adapters);
}

// The text of scripted sequence s: any length, all tokens below n_vocab.
inline std::vector<int32_t> script_tokens(int s, int begin, int n, int n_vocab) {
  std::vector<int32_t> out;
  for (int p = begin; p < begin + n; ++p) out.push_back((s * 29 + p * 11 + p * p % 17) % n_vocab);
  return out;
}

}  // namespace chimere
