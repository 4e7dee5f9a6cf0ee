// The draft pass of whole models: what it computes, and that the trunk does not notice it.
#include "draft_oracle.h"
#include "loaded_model.h"
#include "models/compare_for_test.h"
#include "models/draft_block_for_test.h"

namespace chimere::parity {
namespace {

// A fixture with a draft block bound to a backend; the file lives as long.
struct Drafting {
  std::vector<std::byte> bytes;
  std::unique_ptr<gguf::File> file;
  ExecutablePtr executable;

  Drafting(const char* name, const fixture::DraftBlock& block, CompileFunction compile, const LoadOptions& options,
           bool drafts = true) {
    auto written = fixture::with_draft_block(fixture::kept(name), block);
    EXPECT_TRUE(written) << written.error().message;
    bytes = std::move(*written);
    auto parsed = gguf::File::parse(bytes, name);
    EXPECT_TRUE(parsed) << parsed.error().message;
    file = std::make_unique<gguf::File>(std::move(*parsed));
    models::FileSource source(*file);
    auto program = models::build_program(source, drafts);
    EXPECT_TRUE(program) << program.error().message;
    EXPECT_EQ(program->has_drafts(), drafts);
    executable = compiled(compile(std::move(*program), options));
  }
  Executable& operator*() { return *executable; }
  size_t d() const { return static_cast<size_t>(executable->program().d_model); }
  size_t v() const { return static_cast<size_t>(executable->program().n_vocab); }

  std::vector<int32_t> tokens(int n, int script = 0) const {
    return script_tokens(script, 0, n, executable->program().n_vocab);
  }

  // The trunk over tokens that follow what the sequence has; the hidden states of all of them, without any logits.
  std::vector<float> read(Sequence& s, std::span<const int32_t> more) {
    Batch batch = begin_batch({Part(&s, more)});
    batch.logit_rows.clear();
    std::vector<float> hidden(more.size() * d(), NAN);
    const Status done = executable->run(batch, {.row_hidden = hidden.data()});
    EXPECT_TRUE(done) << done.error().message;
    EXPECT_TRUE(s.commit(static_cast<int>(more.size())));
    return hidden;
  }
};

struct DraftRows {
  std::vector<float> logits, hidden;
};

// The draft pass over positions [pos, pos + tokens) with these hidden states, those of the positions before.
struct DraftPart {
  Sequence* sequence;
  int pos;
  std::span<const int32_t> tokens;
  std::span<const float> hidden;
};
DraftRows draft(Drafting& model, const std::vector<DraftPart>& parts) {
  Batch batch;
  std::vector<float> hidden;
  for (const DraftPart& part : parts) {
    auto slice = part.sequence->begin_pass(part.pos, static_cast<int>(part.tokens.size()));
    EXPECT_TRUE(slice) << slice.error().message;
    slice->first_row = batch.n_rows();
    batch.slices.push_back(*slice);
    for (const int32_t token : part.tokens) {
      batch.logit_rows.push_back(batch.n_rows());
      batch.tokens.push_back(token);
    }
    append_rows(hidden, part.hidden);
  }
  EXPECT_EQ(hidden.size(), batch.tokens.size() * model.d());
  batch.draft_hidden = hidden.data();
  DraftRows out;
  out.logits.assign(batch.tokens.size() * model.v(), NAN);
  out.hidden.assign(batch.tokens.size() * model.d(), NAN);
  const Status done = (*model).run(batch, {.logits = out.logits.data(), .hidden = out.hidden.data()});
  EXPECT_TRUE(done) << done.error().message;
  return out;
}

// h_{-1}, h_0, ...: what the pass pairs with positions 0, 1, ...
std::vector<float> shifted(std::span<const float> hidden, size_t d) {
  std::vector<float> out(d, 0.0f);
  append_rows(out, hidden.first(hidden.size() - d));
  return out;
}

struct Shape {
  const char* name;
  fixture::DraftBlock block;
};
class DraftPass : public testing::TestWithParam<Shape> {
 protected:
  static Drafting load(CompileFunction compile, bool exact, bool drafts = true) {
    const KvFormat kv = exact ? kFloatKv : kHalfKv;
    return Drafting(GetParam().name, GetParam().block, compile, options_for(exact, kv), drafts);
  }
  static Drafting load(bool exact, bool drafts = true) { return load(backend_under_test().compile, exact, drafts); }
  static int many_or_few(int many, int few) { return backend_under_test().is_emulated ? few : many; }
};

TEST_P(DraftPass, ComputesWhatItsDescriptionSays) {
  for (const CompileFunction compile : backend_and_oracle()) {
    Drafting model = load(compile, true);
    const int n = many_or_few(90, 24);
    const std::vector<int32_t> tokens = model.tokens(n);
    Sequence s = new_sequence(*model);
    const std::vector<float> hidden = shifted(model.read(s, tokens), model.d());
    DraftOracle oracle(*model.file);
    int at = 0;
    // Slices of both classes.
    for (const int length : {many_or_few(70, 18), 1, 5, many_or_few(14, 0)}) {
      if (length == 0) continue;
      const std::span<const int32_t> part = std::span(tokens).subspan(static_cast<size_t>(at), length);
      const DraftRows found =
          draft(model, {{&s, at, part, std::span(hidden).subspan(at * model.d(), length * model.d())}});
      for (size_t r = 0; r < part.size(); ++r) {
        const auto before = std::span(hidden).subspan((at + r) * model.d(), model.d());
        const DraftOracle::Result expected = oracle.next(part[r], before);
        for (size_t i = 0; i < model.d(); ++i) {
          ASSERT_NEAR(found.hidden[r * model.d() + i], expected.hidden[i], kExactLimit) << "position " << at + r;
        }
        for (size_t i = 0; i < model.v(); ++i) {
          ASSERT_NEAR(found.logits[r * model.v() + i], expected.logits[i], kExactLimit) << "position " << at + r;
        }
      }
      at += length;
    }
  }
}

TEST_P(DraftPass, RowsHaveTheHiddenStatesOfLogitRows) {
  Drafting model = load(false);
  const std::vector<int32_t> tokens = model.tokens(many_or_few(80, 22)), other = model.tokens(3, 1);
  Sequence a = new_sequence(*model), b = new_sequence(*model);
  // A slice of each class.
  Batch batch = begin_batch({Part(&b, other), Part(&a, tokens)});
  std::vector<float> hidden(batch.tokens.size() * model.d(), NAN), of_rows = hidden;
  ASSERT_TRUE((*model).run(batch, {.hidden = hidden.data(), .row_hidden = of_rows.data()}));
  EXPECT_TRUE(same_bits(of_rows, hidden, model.d()));
  // Also where tokens are drawn on the device, which then may be all that comes back, and steps are graphs.
  const auto draws = (*model).prepare_draws({});
  ASSERT_TRUE(draws);
  if (!*draws) return;
  const SamplingParams greedy;
  const SamplerState said;
  Sequence first = new_sequence(*model), second = new_sequence(*model);
  for (int i = 0; i < 4; ++i) {
    const std::span<const int32_t> next = std::span(tokens).subspan(static_cast<size_t>(i), 1);
    const std::vector<float> expected = step(*model, {Part(&first, next)}, RowValues::hidden)[0];
    batch = begin_batch({Part(&second, next)});
    std::vector<float> found(model.d(), NAN);
    const std::vector<Draw> drawing(1, {&greedy, &said, {}, 0});
    std::vector<Result<Sampled>> drawn(1, Sampled{});
    ASSERT_TRUE((*model).run(batch, {.row_hidden = found.data(), .draws = drawing, .drawn = drawn}));
    commit_batch({Part(&second, next)});
    EXPECT_TRUE(drawn[0]);
    EXPECT_TRUE(same_bits(found, expected, model.d())) << "step " << i;
  }
}

TEST_P(DraftPass, LeavesTheTrunkAsItIs) {
  Drafting with = load(false), without = load(false, false);
  EXPECT_EQ((*with).layout().kv().size(), (*without).layout().kv().size() + 1);
  EXPECT_EQ((*with).layout().recurrent_floats(), (*without).layout().recurrent_floats());
  const int prompt = many_or_few(70, 18), n_steps = many_or_few(12, 3);
  const std::vector<int32_t> tokens = with.tokens(prompt + n_steps);
  Sequence a = new_sequence(*with), b = new_sequence(*without);
  const auto part = [&](size_t at, size_t n) { return std::span(tokens).subspan(at, n); };
  EXPECT_TRUE(
      same_bits(step(*with, {Part(&a, part(0, prompt))})[0], step(*without, {Part(&b, part(0, prompt))})[0], with.v()));
  std::vector<float> state(with.d(), 0.5f);
  for (int i = 0; i < n_steps; ++i) {
    // A pass over the next position, another over one behind.
    state = draft(with, {{&a, prompt + i, part(prompt + i, 1), state}}).hidden;
    if (i % 2 == 1) draft(with, {{&a, prompt - 3, part(prompt - 3, 1), state}});
    ASSERT_TRUE(same_bits(step(*with, {Part(&a, part(prompt + i, 1))})[0],
                          step(*without, {Part(&b, part(prompt + i, 1))})[0], with.v()))
        << "step " << i;
  }
}

// What was guessed from is written over by what was: the bits are those of a pass that never guessed, alone or with
// others, in slices of any length.
TEST_P(DraftPass, IsDoneAgainWithoutATrace) {
  Drafting model = load(false);
  const size_t d = model.d();
  const int prompt = many_or_few(61, 18), n = 6;
  const std::vector<int32_t> tokens = model.tokens(prompt + n);
  const auto part = [&](size_t at, size_t length) { return std::span(tokens).subspan(at, length); };
  Sequence straight = new_sequence(*model);
  const std::vector<float> hidden = shifted(model.read(straight, tokens), d);
  const auto before = [&](size_t at, size_t length) { return std::span(hidden).subspan(at * d, length * d); };
  draft(model, {{&straight, 0, part(0, prompt), before(0, prompt)}});
  DraftRows expected;
  for (int i = 0; i < n; ++i) {
    const DraftRows row = draft(model, {{&straight, prompt + i, part(prompt + i, 1), before(prompt + i, 1)}});
    append_rows(expected.logits, row.logits);
    append_rows(expected.hidden, row.hidden);
  }

  Sequence s = new_sequence(*model), other = new_sequence(*model);
  model.read(s, part(0, prompt));
  draft(model, {{&s, 0, part(0, prompt), before(0, prompt)}});
  const auto kept = s.snapshot();
  ASSERT_TRUE(kept);
  const std::vector<float> wrong(4 * d, 0.25f);
  draft(model, {{&s, prompt, part(1, 4), wrong}, {&other, 0, part(0, 3), before(0, 3)}});
  DraftRows found =
      draft(model, {{&other, 3, part(3, 2), before(3, 2)}, {&s, prompt, part(prompt, 4), before(prompt, 4)}});
  append_rows(found.logits, draft(model, {{&s, prompt + 4, part(prompt + 4, 2), before(prompt + 4, 2)}}).logits);
  EXPECT_TRUE(same_bits(std::span(found.logits).subspan(2 * model.v()), expected.logits, model.v()));
  // Nor is there one in pages that a snapshot shares.
  Sequence again = new_sequence(*model);
  ASSERT_TRUE(again.restore(*kept));
  EXPECT_TRUE(same_bits(draft(model, {{&again, prompt, part(prompt, n), before(prompt, n)}}).logits, expected.logits,
                        model.v()));
}

INSTANTIATE_TEST_SUITE_P(Blocks, DraftPass,
                         testing::Values(Shape{"qwen3_5_moe-B-untied", {}}, Shape{"qwen3_5-A", {false, false}},
                                         Shape{"qwen3_5-A", {true, true}}),
                         [](const auto& info) {
                           const std::string kind = info.param.block.has_ends ? "own_ends" : "shared_ends";
                           return std::string(info.index == 0 ? "moe_" : "dense_") + kind;
                         });

}  // namespace
}  // namespace chimere::parity
