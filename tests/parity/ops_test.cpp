// The table on the backend under test, in float32 and in fast mode, with one thread and with several.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>

#include "backend_under_test.h"
#include "models/compare_for_test.h"
#include "table.h"

namespace chimere::parity {
namespace {

constexpr int kMaxRows = 320;

// What came out for a token.
struct SeenRow {
  int32_t token;
  std::vector<float> values;
  bool operator==(const SeenRow&) const = default;
};

// All rows of a batch that the case asks for.
void see_batch(const ParityCase& c, Executable& executable, const std::vector<Part>& parts,
               std::vector<SeenRow>& seen) {
  Batch batch = begin_batch(parts);
  if (!c.chosen_rows.empty()) batch.logit_rows = c.chosen_rows;
  const size_t n = batch.logit_rows.size(), d_model = c.p.program.d_model, n_vocab = c.p.program.n_vocab;
  std::vector<float> hidden(n * d_model, NAN), logits(c.has_logits ? n * n_vocab : 0, NAN);
  std::vector<float> draft_hidden;
  for (size_t r = 0; c.draft_hidden && r < batch.tokens.size(); ++r) {
    append_rows(draft_hidden, c.draft_hidden(batch.tokens[r]));
  }
  if (c.draft_hidden) batch.draft_hidden = draft_hidden.data();
  float* to_logits = c.has_logits ? logits.data() : nullptr;
  ASSERT_TRUE(executable.run(batch, {.logits = to_logits, .hidden = hidden.data()}));
  if (c.has_logits) {
    // Asking for less changes nothing of what is left.
    std::vector<float> only(logits.size(), NAN);
    ASSERT_TRUE(executable.run(batch, {.logits = only.data()}));
    ASSERT_EQ(only, logits);
  }
  commit_batch(parts);
  for (size_t r = 0; r < n; ++r) {
    SeenRow row{batch.tokens[batch.logit_rows[r]], {}};
    for (size_t i = 0; i < d_model; ++i) row.values.push_back(hidden[r * d_model + i] * c.scale);
    if (c.has_logits) append_rows(row.values, std::span(logits).subspan(r * n_vocab, n_vocab));
    seen.push_back(std::move(row));
  }
}

std::vector<SeenRow> see(const ParityCase& c, Executable& executable) {
  std::vector<SeenRow> seen;
  std::deque<Sequence> sequences;
  for (const auto& step : backend_under_test().is_emulated ? c.steps_if_slow : c.steps) {
    std::vector<Part> parts;
    for (auto [s, n] : step) {
      while (s >= static_cast<int>(sequences.size())) sequences.push_back(new_sequence(executable));
      parts.emplace_back(&sequences[s], script_tokens(s, sequences[s].length(), n, c.p.program.n_vocab));
      if (c.has_pairs) parts.back().second_kind_at = 2 * n / 3;
    }
    see_batch(c, executable, parts, seen);
    if (testing::Test::HasFatalFailure()) break;
  }
  return seen;
}

// Within the case's bounds; or, where the mode has none, in the same direction.
void expect_near(const ParityCase& c, const std::vector<SeenRow>& found, const std::vector<SeenRow>& expected,
                 bool exact) {
  ASSERT_EQ(found.size(), expected.size());
  const bool bounded = exact || (backend_under_test().fast_is_bounded && c.fast_is_bounded);
  std::map<int32_t, std::vector<double>> tolerance;
  for (size_t r = 0; r < expected.size(); ++r) {
    const std::vector<float>&have = found[r].values, &want = expected[r].values;
    if (!bounded) {
      ASSERT_GE(cosine(have, want), 0.999) << "row " << r;
      continue;
    }
    std::vector<double>& allowed = tolerance[expected[r].token];
    if (allowed.empty()) allowed = c.tolerance(expected[r].token, !exact);
    ASSERT_EQ(allowed.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(have[i], want[i], allowed[i] + c.rounding * std::abs(want[i])) << "row " << r << " column " << i;
    }
  }
}

class Parity : public testing::TestWithParam<Row> {};

TEST_P(Parity, WithTheOracle) {
  const std::unique_ptr<ParityCase> c = GetParam().make();
  const BackendUnderTest& backend = backend_under_test();
  LoadOptions options;
  options.kv = c->kv;
  options.max_rows = kMaxRows;
  if (!backend.can_run(c->p.program)) {
    const auto refused = backend.compile(c->p.program, options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::unsupported);
    return;
  }
  const ExecutablePtr oracle = compiled(reference::compile(c->p.program, options));
  ASSERT_TRUE(oracle);
  const std::vector<SeenRow> expected = see(*c, *oracle);

  for (bool exact : {true, false}) {
    SCOPED_TRACE(exact ? "exact" : "fast");
    std::vector<SeenRow> first;
    for (int n_threads : backend.thread_counts) {
      options.exact = exact;
      options.n_threads = n_threads;
      const ExecutablePtr executable = compiled(backend.compile(c->p.program, options));
      ASSERT_TRUE(executable);
      const std::vector<SeenRow> found = see(*c, *executable);
      if (first.empty()) first = found;
      ASSERT_TRUE(found == first) << "bits depend on the number of threads";
      expect_near(*c, found, expected, exact);
    }
  }
}

// Under checked addresses an emulator is several times slower again: there the first row of each op has to do.
Rows rows_to_run() {
  Rows rows = table();
  if (!backend_under_test().is_emulated) return rows;
  std::set<size_t> seen;
  std::erase_if(rows, [&](const Row& row) { return !row.runs_if_slow || (kSanitized && !seen.insert(row.op).second); });
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Ops, Parity, testing::ValuesIn(rows_to_run()),
                         [](const auto& info) { return info.param.name; });

// A row that does not contain the op it stands under would leave the op untested.
TEST(ParityTable, RunsEveryOp) {
  std::set<size_t> run;
  for (const Row& row : rows_to_run()) {
    const std::unique_ptr<ParityCase> c = row.make();
    bool has_op = false;
    for (const Op& op : c->p.program.ops) has_op |= op.index() == row.op;
    EXPECT_TRUE(has_op) << row.name;
    if (backend_under_test().can_run(c->p.program)) run.insert(row.op);
  }
  EXPECT_EQ(run.size(), std::variant_size_v<Op>);
}

}  // namespace
}  // namespace chimere::parity
