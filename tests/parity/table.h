// table.h  The parity table: every op, in shapes that divide nothing.
//
// A row of the table is a tiny program around one op. Its inputs come straight from embedding tables, so the backend
// and the oracle see the same bits, and its output is read back unchanged (ProgramForTest::observe). Tolerances are
// computed from the weights and inputs of the row (approx.h); those of attention and recurrences are argued beside
// their rows.
//
// An op without rows does not compile: table() asks for rows_of every alternative of Op.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "approx.h"
#include "program.h"

namespace chimere::parity {

// Batches, each a list of (sequence, tokens).
using Steps = std::vector<std::vector<std::pair<int, int>>>;

inline const Steps kFewRows = {{{0, 1}}, {{0, 18}, {1, 1}, {2, 5}}, {{1, 7}, {0, 1}}};

// Slices of 1, 16, 17, 63, 64, 65 and 150 tokens, cut at odd places and at the grid, alone and in company.
inline const Steps kManyCuts = {{{0, 150}},        {{1, 1}},  {{1, 16}, {2, 17}, {0, 1}}, {{1, 17}, {0, 1}},
                                {{2, 63}, {1, 2}}, {{1, 64}}, {{1, 65}, {0, 5}, {2, 1}}};
inline constexpr int kManyCutsLength = 165;  // of the longest of them
// The classes and a step over the grid, for backends that are slow.
inline const Steps kFewCuts = {{{1, 1}}, {{0, 66}, {1, 5}}, {{2, 17}, {0, 1}}};

struct ParityCase {
  explicit ParityCase(int n_vocab) : p(n_vocab) {}
  ProgramForTest p;
  KvFormat kv{DType::F32, DType::F32, false};
  Steps steps = kFewRows;
  Steps steps_if_slow = kFewRows;
  // Of a batch's rows, those that are asked for; empty: all.
  std::vector<int32_t> chosen_rows = {};
  // Of a token's row, [d_model]: the batches are draft passes over these.
  std::function<std::vector<float>(int32_t token)> draft_hidden = nullptr;
  // Tokens of the last third of a slice are of the second kind.
  bool has_pairs = false;
  // What is compared: hidden rows times `scale`, and behind them the logits.
  float scale = ProgramForTest::kObserved;
  bool has_logits = false;
  // Of one such row, given its token, beside `rounding` of each value.
  std::function<std::vector<double>(int32_t token, bool int8)> tolerance;
  double rounding = 2 * kUlp;  // that of `observe`
  // Whether `tolerance` knows what 8-bit activations do. If not, fast rows need only point where the oracle's do.
  bool fast_is_bounded = true;

  void cut_often() {
    steps = kManyCuts;
    steps_if_slow = kFewCuts;
  }
  void allow(double error, int width) {
    tolerance = [error, width](int32_t, bool) { return std::vector<double>(width, error); };
  }
};

struct Row {
  std::string name;
  std::function<std::unique_ptr<ParityCase>()> make;
  // False where it is one more value of what a slow backend's kernel tests go through by themselves.
  bool runs_if_slow = true;
  size_t op = 0;  // into Op, filled by table()
};
using Rows = std::vector<Row>;

inline void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

template <class T>
using Tag = std::type_identity<T>;

Rows rows_of(Tag<op::Embed>);
Rows rows_of(Tag<op::NormMatmul>);
Rows rows_of(Tag<op::MatmulAdd>);
Rows rows_of(Tag<op::GdnMix>);
Rows rows_of(Tag<op::Mamba2Mix>);
Rows rows_of(Tag<op::CausalConv>);
Rows rows_of(Tag<op::SelectiveScan>);
Rows rows_of(Tag<op::Attention>);
Rows rows_of(Tag<op::DenseFfn>);
Rows rows_of(Tag<op::MoeFfn>);
Rows rows_of(Tag<op::LmHead>);
Rows rows_of(Tag<op::LayerNorm>);
Rows rows_of(Tag<op::Gelu>);
Rows rows_of(Tag<op::HiddenOut>);
Rows rows_of(Tag<op::DraftInput>);

Rows table();

// Types a weight may have: all but the integers, which hold ids and counts.
std::vector<DType> matrix_types();
// A few of them, one of each way that weights are stored.
bool is_of_few(DType type);
std::string lower_name(DType type);
// About `blocks` blocks, or a prime number of floats.
int odd_width(DType type, int blocks);

}  // namespace chimere::parity
