// card_models.h  Models of the repository bound to any backend, and runs of them to compare, for the tests of this
// folder.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backend/adapter.h"
#include "backend/backend.h"
#include "cache/sequence.h"
#include "gguf/gguf.h"
#include "models/fixture_for_test.h"
#include "models/registry.h"

namespace chimere::card {

namespace fs = std::filesystem;

inline constexpr float kExactLimit = 5e-4f;
inline constexpr KvFormat kFloatKv{DType::F32, DType::F32, false};
inline constexpr KvFormat kHalfKv{DType::F16, DType::F16, false};

// A file bound to a backend; both live together.
class Loaded {
 public:
  using Compile = Result<std::unique_ptr<Executable>> (*)(Program, const LoadOptions&);

  static Result<Loaded> open(const fs::path& folder, Compile compile, const LoadOptions& options) {
    Loaded loaded;
    TRY_ASSIGN(gguf::File file, gguf::File::open((folder / "model.gguf").string()));
    loaded.file_ = std::make_unique<gguf::File>(std::move(file));
    models::FileSource source(*loaded.file_);
    TRY_ASSIGN(Program program, models::build_program(source));
    TRY_ASSIGN(loaded.executable_, compile(std::move(program), options));
    return Result<Loaded>{std::move(loaded)};
  }

  Executable& operator*() { return *executable_; }
  Executable* operator->() { return executable_.get(); }

 private:
  std::unique_ptr<gguf::File> file_;
  std::unique_ptr<Executable> executable_;
};

inline LoadOptions options_for(bool exact, const KvFormat& kv, int cpu_moe = 0) {
  LoadOptions options;
  options.cpu_moe = cpu_moe;
  options.exact = exact;
  options.kv = kv;
  options.max_rows = 96;
  options.n_threads = 1;
  return options;
}

inline Loaded load(const fs::path& folder, Loaded::Compile compile, bool exact, const KvFormat& kv, int cpu_moe = 0) {
  auto loaded = Loaded::open(folder, compile, options_for(exact, kv, cpu_moe));
  EXPECT_TRUE(loaded) << loaded.error().message;
  return std::move(*loaded);
}

inline Sequence start(Executable& executable, int rollback_window = 0) {
  auto sequence = Sequence::create(executable, rollback_window);
  EXPECT_TRUE(sequence) << sequence.error().message;
  return std::move(*sequence);
}

struct Part {
  Sequence* sequence;
  std::span<const int32_t> tokens;
  const AdapterSet* adapters = nullptr;
};

// One batch of all parts; the logits of every row, part after part.
inline std::vector<float> step(Executable& executable, const std::vector<Part>& parts) {
  Batch batch;
  for (const Part& part : parts) {
    auto slice = part.sequence->begin(static_cast<int>(part.tokens.size()));
    EXPECT_TRUE(slice) << slice.error().message;
    slice->first_row = batch.n_rows();
    slice->adapters = part.adapters;
    batch.slices.push_back(*slice);
    for (int32_t token : part.tokens) {
      batch.logit_rows.push_back(batch.n_rows());
      batch.tokens.push_back(token);
    }
  }
  std::vector<float> logits(batch.logit_rows.size() * executable.program().n_vocab);
  const Status done = executable.run(batch, {.logits = logits.data()});
  EXPECT_TRUE(done) << done.error().message;
  for (const Part& part : parts) EXPECT_TRUE(part.sequence->commit(static_cast<int>(part.tokens.size())));
  return logits;
}

// The logits of every token, in slices of the lengths given, the last of which repeats.
inline std::vector<float> feed(Executable& executable, Sequence& sequence, std::span<const int32_t> tokens,
                               const std::vector<int>& lengths, const AdapterSet* adapters = nullptr) {
  std::vector<float> logits;
  for (size_t at = 0, i = 0; at < tokens.size(); ++i) {
    const size_t n = std::min<size_t>(lengths[std::min(i, lengths.size() - 1)], tokens.size() - at);
    const std::vector<float> rows = step(executable, {{&sequence, tokens.subspan(at, n), adapters}});
    logits.insert(logits.end(), rows.begin(), rows.end());
    at += n;
  }
  return logits;
}

inline std::vector<float> feed_alone(Executable& executable, std::span<const int32_t> tokens,
                                     const std::vector<int>& lengths, const AdapterSet* adapters = nullptr) {
  Sequence sequence = start(executable);
  return feed(executable, sequence, tokens, lengths, adapters);
}

inline float max_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  float worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const float d = std::abs(a[i] - b[i]);
    worst = std::isfinite(d) ? std::max(worst, d) : INFINITY;
  }
  return worst;
}

// Mean Kullback-Leibler divergence of q from p over all rows, in nats.
inline double mean_divergence(std::span<const float> p, std::span<const float> q, size_t v) {
  EXPECT_EQ(p.size(), q.size());
  const auto log_total = [v](const float* row) {
    const double top = *std::max_element(row, row + v);
    double sum = 0;
    for (size_t i = 0; i < v; ++i) sum += std::exp(row[i] - top);
    return top + std::log(sum);
  };
  double total = 0;
  for (size_t r = 0; r < p.size(); r += v) {
    const double lp = log_total(&p[r]), lq = log_total(&q[r]);
    for (size_t i = 0; i < v; ++i) {
      const double log_p = p[r + i] - lp;
      total += std::exp(log_p) * (log_p - (q[r + i] - lq));
    }
  }
  return total / static_cast<double>(p.size() / v);
}

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

inline std::vector<int32_t> some_tokens(const fs::path& folder, size_t n) {
  const auto arrays = fixture::read_arrays(folder);
  const auto tokens = arrays.at("tokens_150").ints();
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(std::min(n, tokens.size()))};
}

}  // namespace chimere::card
