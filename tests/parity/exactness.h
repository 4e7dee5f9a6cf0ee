// exactness.h  What the tests of the numbers contract share: a random model on the backend under test, and its text.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hybrid.h"
#include "models/compare_for_test.h"

namespace chimere::parity {

struct Variant {
  Hybrid::Kind kind;
  KvFormat kv;
};

// A model for each kind of state. An emulated card has whole models too (tests/cuda/): there one is enough, with pages
// that those do not have.
inline std::vector<Variant> variants() {
  const Variant mamba{Hybrid::Kind::mamba, kHalfKv},
      quantised{Hybrid::Kind::delta_net, {DType::Q8_0, DType::Q4_0, true}};
  if (!backend_under_test().is_emulated) return {{Hybrid::Kind::delta_net, kHalfKv}, quantised, mamba};
  return {kSanitized ? mamba : quantised};
}

inline std::string variant_name(const testing::TestParamInfo<Variant>& info) {
  return std::string(info.param.kind == Hybrid::Kind::mamba ? "mamba_" : "delta_net_") +
         std::string(name(info.param.kv.k));
}

class HybridTest : public testing::TestWithParam<Variant> {
 protected:
  static ExecutablePtr compile(int n_threads) { return Hybrid::of(GetParam().kind).compile(n_threads, GetParam().kv); }

  // A number of tokens or steps: fewer where kernels are emulated.
  static int many_or_few(int many, int few) { return backend_under_test().is_emulated ? few : many; }
};

inline std::vector<int32_t> text(int begin, int n, int sequence = 0) {
  return script_tokens(sequence, begin, n, Hybrid::kVocab);
}

// Logits of positions [begin, end) when they are fed in slices of n.
inline std::vector<float> run_in_slices(Executable& e, Sequence& s, int begin, int end, int n) {
  return feed(e, s, text(begin, end - begin), {n});
}

// Logits of n tokens of a script, which follow what the sequence has.
inline std::vector<float> go_on(Executable& e, Sequence& s, int n, int script = 0) {
  return feed(e, s, text(s.length(), n, script), {n});
}

inline std::span<const float> rows(const std::vector<float>& logits, int begin, int n) {
  return std::span(logits).subspan(static_cast<size_t>(begin) * Hybrid::kVocab,
                                   static_cast<size_t>(n) * Hybrid::kVocab);
}

inline testing::AssertionResult same_logits(std::span<const float> a, std::span<const float> b) {
  return same_bits(a, b, Hybrid::kVocab);
}

}  // namespace chimere::parity
