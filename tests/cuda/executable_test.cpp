// Whole models on the CUDA backend, in the emulator: logits against the reference backend, and the numbers contract of
// backend/ops.h. Here and not beside executable.cpp because it needs models/ and cache/, which stand above a backend.
//
// The models are those of the repository, and a few of the larger set in $CHIMERE_SHARED/fixtures.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "backend/cuda/lowering.h"
#include "backend/cuda/program_binding.h"
#include "models/compare_for_test.h"
#include "models/synthetic.h"
#include "parity/loaded_model.h"

namespace chimere {
namespace {

using namespace parity;  // NOLINT

// A model of the suite; the experts of its first mixtures may be with the host.
struct Case {
  fs::path folder;
  int cpu_moe = 0;
};

std::vector<Case> models_and_places() {
  // Checked addresses make the emulator several times slower: one model, which has every kind of layer.
  const fs::path every_layer = fixture::kept("qwen3_5_moe-B-untied");
  if (kSanitized) return {{every_layer}, {every_layer, 1}};
  std::vector<Case> cases = {{every_layer, 1}, {every_layer, kAllMixtures}};
  // Latent experts without a gate, and experts with biases.
  for (const char* name : {"nemotron_h-moe-L", "gpt_oss-A"}) cases.push_back({fixture::kept(name), kAllMixtures});
  std::vector<fs::path> folders = fixture::models_in(fixture::kept_root(), fixture::gives_logits);
  if (const char* shared = std::getenv("CHIMERE_SHARED")) {
    for (const char* name : {"qwen3_5_moe-C", "qwen3_5_moe-R", "qwen3_5_moe-Q-iq3_s", "qwen3-A", "llama-A", "mamba2-g1",
                             "mamba2-g2", "nemotron_h-dense-A", "nemotron_h-moe-A", "nemotron_h-moe-R",
                             "granitemoehybrid-dense-A", "granitemoehybrid-moe-A", "falcon_h1-A", "jamba-A"}) {
      const fs::path folder = fs::path(shared) / "fixtures" / name;
      if (fs::exists(folder / "model.gguf")) folders.push_back(folder);
    }
  }
  for (const fs::path& folder : folders) cases.push_back({folder});
  return cases;
}

// Those of the repository have every kind of layer and state: more of them would only take longer.
std::vector<Case> kept_models_and_places() {
  std::vector<Case> cases = models_and_places();
  std::erase_if(cases, [](const Case& c) { return c.folder.parent_path() != fixture::kept_root(); });
  return cases;
}

class CudaModels : public testing::TestWithParam<Case> {
 protected:
  static const fs::path& folder() { return GetParam().folder; }
  static Loaded load_card(bool exact, const KvFormat& kv) {
    return load(folder(), cuda::compile, exact, kv, GetParam().cpu_moe);
  }
};

// Prompt and tail in one slice, in slices of both classes, and decoded token by token (from the third step on by a
// graph).
TEST_P(CudaModels, ExactLogitsAreThoseOfTheOracle) {
  const std::vector<int32_t> tokens = some_tokens(folder(), 40);
  Loaded oracle = load(folder(), reference::compile, true, kFloatKv);
  Loaded card = load_card(true, kFloatKv);
  const std::vector<float> expected = feed_alone(*oracle, tokens, {40});
  const float whole = max_difference(expected, feed_alone(*card, tokens, {40}));
  const float pieces = max_difference(expected, feed_alone(*card, tokens, {19, 5, 16}));
  const float steps = max_difference(expected, feed_alone(*card, tokens, {32, 1}));
  std::printf("    %-22s whole %.1e  pieces %.1e  steps %.1e\n", folder().filename().c_str(), whole, pieces, steps);
  EXPECT_LE(whole, kExactLimit);
  EXPECT_LE(pieces, kExactLimit);
  EXPECT_LE(steps, kExactLimit);
}

// 1.6e-2 is what the same activations in 8 bits may cost on quantised files (models/golden_test.cpp); prefill keeps 11
// bits.
TEST_P(CudaModels, FastLogitsDivergeLittle) {
  const std::vector<int32_t> tokens = some_tokens(folder(), 80);
  Loaded oracle = load(folder(), reference::compile, true, kFloatKv);
  Loaded card = load_card(false, kHalfKv);
  const size_t v = oracle->program().n_vocab;
  const std::vector<float> expected = feed_alone(*oracle, tokens, {80});
  const double whole = mean_divergence(expected, feed_alone(*card, tokens, {80}), v);
  const double steps = mean_divergence(expected, feed_alone(*card, tokens, {64, 16}), v);
  std::printf("    %-22s whole KL %.1e  with decoding KL %.1e\n", folder().filename().c_str(), whole, steps);
  EXPECT_LE(whole, kFastDivergence);
  EXPECT_LE(steps, kFastDivergence);
}

class CudaContract : public CudaModels {};

// Decode class: a row's bits depend on nothing else in the batch, neither on the lengths of slices nor on a prompt
// beside them.
TEST_P(CudaContract, DecodeRowsDoNotDependOnTheirCompany) {
  const std::vector<int32_t> tokens = some_tokens(folder(), 60);
  const std::span<const int32_t> all(tokens);
  for (const bool exact : {true, false}) {
    Loaded card = load_card(exact, kHalfKv);
    const std::vector<float> first = feed_alone(*card, all.first(8), {3, 1});
    const std::vector<float> second = feed_alone(*card, all.subspan(8, 14), {7, 5, 2});
    const std::vector<float> prompt = feed_alone(*card, all.subspan(22, 20), {20});

    Sequence a = new_sequence(*card), b = new_sequence(*card), c = new_sequence(*card);
    std::vector<float> rows_a = feed(*card, a, all.first(3), {3});
    // The prompt stands between the two, and the decode slices are cut otherwise than alone.
    const std::vector<std::vector<float>> together =
        step(*card, {{&a, all.subspan(3, 5)}, {&c, all.subspan(22, 20)}, {&b, all.subspan(8, 14)}});
    append_rows(rows_a, together[0]);
    EXPECT_EQ(first, rows_a) << "exact " << exact;
    EXPECT_EQ(second, together[2]) << "exact " << exact;
    EXPECT_EQ(max_difference(prompt, together[1]), 0.0f) << "exact " << exact;
  }
}

TEST_P(CudaContract, RollbackLeavesNoTrace) {
  const std::vector<int32_t> tokens = some_tokens(folder(), 40);
  const std::span<const int32_t> all(tokens);
  Loaded card = load_card(false, kHalfKv);
  Sequence straight = new_sequence(*card);
  feed(*card, straight, all.first(20), {20});
  const std::vector<float> expected = feed(*card, straight, all.subspan(20, 6), {2});

  Sequence back = new_sequence(*card);
  feed(*card, back, all.first(20), {20});
  std::vector<int32_t> draft(tokens.begin() + 20, tokens.begin() + 22);
  draft.insert(draft.end(), tokens.begin() + 30, tokens.begin() + 35);
  std::vector<float> found = step(*card, {Part::draft(&back, draft)})[0];
  found.resize(found.size() / 7 * 2);
  ASSERT_TRUE(back.rollback(5));
  append_rows(found, feed(*card, back, all.subspan(22, 4), {1}));
  EXPECT_EQ(expected, found);
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  const int hosted = info.param.cpu_moe;
  std::string name = info.param.folder.filename().string();
  if (hosted != 0) name += "_cpu_moe_" + (hosted == kAllMixtures ? "all" : std::to_string(hosted));
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(Models, CudaModels, testing::ValuesIn(models_and_places()), case_name);
INSTANTIATE_TEST_SUITE_P(Models, CudaContract, testing::ValuesIn(kept_models_and_places()), case_name);

// More decode rows than a pass takes.
TEST(CudaExecutable, RunsManyDecodeRowsInSeveralPasses) {
  const fs::path folder = fixture::kept("qwen3_5-A");
  const std::vector<int32_t> tokens = some_tokens(folder, 80);
  const std::span<const int32_t> all(tokens);
  Loaded card = load(folder, cuda::compile, false, kHalfKv);
  std::vector<Sequence> sequences;
  std::vector<Part> parts;
  std::vector<std::vector<float>> alone;
  for (int i = 0; i < 5; ++i) {
    alone.push_back(feed_alone(*card, all.subspan(16 * i, 16), {16}));
    sequences.push_back(new_sequence(*card));
  }
  for (int i = 0; i < 5; ++i) parts.emplace_back(&sequences[i], all.subspan(16 * i, 16));
  EXPECT_EQ(alone, step(*card, parts));
}

TEST(CudaExecutable, GivesHiddenVectorsOfTheRowsAskedFor) {
  const fs::path folder = fixture::kept("qwen2-A");
  const std::vector<int32_t> tokens = some_tokens(folder, 24);
  std::vector<float> found[2];
  for (const CompileFunction compile : {CompileFunction(reference::compile), CompileFunction(cuda::compile)}) {
    Loaded loaded = load(folder, compile, true, kFloatKv);
    Sequence a = new_sequence(*loaded), b = new_sequence(*loaded);
    auto first = a.begin(18), second = b.begin(6);
    ASSERT_TRUE(first && second);
    second->first_row = 18;
    const Batch batch{tokens, {*first, *second}, {3, 17, 20, 23}};
    std::vector<float>& hidden = found[compile == CompileFunction(cuda::compile)];
    hidden.resize(4 * loaded->program().d_model);
    ASSERT_TRUE(loaded->run(batch, {.hidden = hidden.data()}));
  }
  EXPECT_LE(max_difference(found[0], found[1]), kExactLimit);
}

// Of each kind of row one: greedy, drawn, drawn with penalties on its history, forced with figures, and one whose
// logits are wanted. Decode rows and rows of a prompt in one batch.
TEST(CudaExecutable, DrawsWhatTheHostWouldDraw) {
  const fs::path folder = fixture::kept("qwen3_5_moe-B-untied");
  const std::vector<int32_t> tokens = some_tokens(folder, 30);
  Loaded card = load(folder, cuda::compile, false, kHalfKv);
  const int32_t v = card->program().n_vocab;
  const std::vector<int32_t> suppressed = {0, 5};
  const auto ready = card->prepare_draws(suppressed);
  ASSERT_TRUE(ready && *ready);
  std::vector<SamplingParams> params(5);
  params[0].temperature = 0;
  params[1].seed = 7, params[1].top_k = 20, params[1].top_p = 0.9f;
  params[2].seed = 8, params[2].repetition_penalty = 1.3f, params[2].presence_penalty = 0.4f;
  params[2].penalty_last_n = 9, params[2].dry_multiplier = 0.8f;
  params[3].top_logprobs = 4;
  SamplerState state(std::span<const int32_t>(tokens).first(20));
  for (int32_t token : {3, 4, 3, 4}) state.accept(token);

  std::vector<float> logits;
  std::vector<Result<Sampled>> drawn(5, Error{Code::internal, ""});
  for (const bool draws : {false, true}) {
    Sequence a = new_sequence(*card), b = new_sequence(*card);
    auto first = a.begin(24), second = b.begin(6);
    ASSERT_TRUE(first && second);
    second->first_row = 24;
    const Batch batch{tokens, {*first, *second}, {3, 17, 23, 25, 29}};
    std::vector<float> found(5 * v, -1.0f);
    std::vector<Draw> wanted;
    for (int i = 0; i < 5 && draws; ++i) wanted.push_back({&params[i], &state, {}, 100u + i});
    if (draws) {
      wanted[3].inputs.forced = 11;
      wanted[4].params = nullptr;
    }
    Outputs outputs{.logits = found.data(), .draws = wanted, .drawn = std::span(drawn).first(wanted.size())};
    const Status done = card->run(batch, outputs);
    ASSERT_TRUE(done) << done.error().message;
    if (!draws) {
      logits = found;
      continue;
    }
    Sampler host(v, suppressed);
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(drawn[i]) << i << ": " << drawn[i].error().message;
      const auto expected =
          host.sample(std::span(logits).subspan(i * v, v), params[i], state, wanted[i].inputs, wanted[i].position);
      ASSERT_TRUE(expected);
      EXPECT_EQ(drawn[i]->id, expected->id) << i;
      ASSERT_EQ(drawn[i]->top.size(), expected->top.size()) << i;
      for (size_t j = 0; j < expected->top.size(); ++j) EXPECT_EQ(drawn[i]->top[j].id, expected->top[j].id);
      if (i == 3) {
        EXPECT_NEAR(drawn[i]->logprob, expected->logprob, 1e-5);
      }
      EXPECT_EQ(found[i * v], -1.0f) << "logits of a row that was drawn from";
    }
    EXPECT_TRUE(std::equal(found.begin() + 4 * v, found.end(), logits.begin() + 4 * v));
  }
}

// Steps that a graph runs from the third on, tokens included. What requests ask for changes from step to step, and some
// of it is so long that it moves.
TEST(CudaExecutable, GraphsDrawWhatTheHostWouldDraw) {
  constexpr int kStreams = 3, kSteps = 16;
  const fs::path folder = fixture::kept("qwen3_5_moe-B-untied");
  const std::vector<int32_t> tokens = some_tokens(folder, kStreams * kSteps);
  Loaded card = load(folder, cuda::compile, false, kHalfKv);
  const int32_t v = card->program().n_vocab;
  const std::vector<int32_t> suppressed = {1};
  const auto ready = card->prepare_draws(suppressed);
  ASSERT_TRUE(ready && *ready);
  Sampler host(v, suppressed);
  std::vector<Sequence> plain, drawing;
  for (int i = 0; i < kStreams; ++i) {
    plain.push_back(new_sequence(*card));
    drawing.push_back(new_sequence(*card));
  }
  SamplerState state(std::span<const int32_t>(tokens).first(20));
  std::vector<uint64_t> mask((static_cast<size_t>(v) + 63) / 64, 0x5555555555555555u);
  const std::vector<TokenBias> long_list(200000, TokenBias{3, 1e-4f});

  for (int step = 0; step < kSteps; ++step) {
    std::vector<SamplingParams> params(kStreams);
    std::vector<Draw> wanted;
    for (int i = 0; i < kStreams; ++i) {
      SamplingParams& p = params[i];
      p.temperature = i == 0 ? 0.0f : 0.8f;
      p.seed = static_cast<uint64_t>(step * kStreams + i);
      p.top_k = 20 + step, p.top_p = 0.95f;
      if (step >= 5) p.presence_penalty = 0.5f;
      if (step >= 8 && i == 1) p.top_k = 0, p.top_logprobs = 3;
      wanted.push_back({&p, &state, {}, static_cast<uint64_t>(step)});
      if (step >= 8 && step < 12) wanted.back().inputs.mask = mask;
      if (step == 10 && i == 2) wanted.back().inputs.bias = long_list;
    }
    std::vector<float> logits(static_cast<size_t>(kStreams) * v);
    std::vector<Result<Sampled>> drawn(kStreams, Error{Code::internal, ""});
    for (std::vector<Sequence>* sequences : {&plain, &drawing}) {
      Batch batch;
      for (int i = 0; i < kStreams; ++i) {
        auto slice = (*sequences)[i].begin(1);
        ASSERT_TRUE(slice);
        slice->first_row = i;
        batch.slices.push_back(*slice);
        batch.tokens.push_back(tokens[step * kStreams + i]);
        batch.logit_rows.push_back(i);
      }
      const Outputs outputs =
          sequences == &plain ? Outputs{.logits = logits.data()} : Outputs{.draws = wanted, .drawn = drawn};
      const Status done = card->run(batch, outputs);
      ASSERT_TRUE(done) << done.error().message;
      for (Sequence& sequence : *sequences) ASSERT_TRUE(sequence.commit(1));
    }
    for (int i = 0; i < kStreams; ++i) {
      const std::string where = "step " + std::to_string(step) + ", row " + std::to_string(i);
      ASSERT_TRUE(drawn[i]) << where << ": " << drawn[i].error().message;
      const auto expected = host.sample(std::span(logits).subspan(static_cast<size_t>(i) * v, v), params[i], state,
                                        wanted[i].inputs, wanted[i].position);
      ASSERT_TRUE(expected) << where;
      EXPECT_EQ(drawn[i]->id, expected->id) << where;
      EXPECT_EQ(drawn[i]->top.size(), expected->top.size()) << where;
    }
    state.accept(drawn[1]->id);
  }
}

// What a step has beside the launches of the model: one to fetch the batch, two to draw a usual token.
TEST(CudaExecutable, ProfilesADecodeStep) {
  const fs::path folder = fixture::kept("qwen2-A");
  Loaded card = load(folder, cuda::compile, false, kHalfKv);
  const auto ready = card->prepare_draws({});
  ASSERT_TRUE(ready && *ready);
  Sequence sequence = new_sequence(*card);
  const auto slice = sequence.begin(1);
  ASSERT_TRUE(slice);
  const auto times = card->profile({{3}, {*slice}, {0}}, 1);
  ASSERT_TRUE(times) << times.error().message;
  const auto launches = [&](const std::string& name) {
    for (const FamilyTime& family : *times) {
      if (family.name == name) return family.n_launches;
    }
    return 0;
  };
  EXPECT_EQ(launches("fetch"), 1);
  EXPECT_EQ(launches("drawing"), 2);
  EXPECT_EQ(times->back().name, "all together");
  int sum = 0;
  for (const FamilyTime& family : *times) sum += family.n_launches;
  EXPECT_EQ(sum, 2 * times->back().n_launches + 4);  // the submission is one, too
}

TEST(CudaExecutable, SaysWhatAModelNeedsThatDoesNotFit) {
  LoadOptions options = options_for(false, kHalfKv);
  options.device_bytes = 1 << 20;
  const auto loaded = Loaded::open(fixture::kept("qwen3_5_moe-B-untied"), cuda::compile, options);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::exhausted);
  for (const char* part : {"weights", "working memory", "sequence", "expected at most 1.00 MiB"}) {
    EXPECT_NE(loaded.error().message.find(part), std::string::npos) << loaded.error().message;
  }
}

// The least that a model loads with, and room for some sequences: passes are smaller then, and nothing else is
// different.
TEST(CudaExecutable, ATightBudgetChangesNoBits) {
  const fs::path folder = fixture::kept("qwen3_5-A");
  const std::vector<int32_t> tokens = some_tokens(folder, 80);
  LoadOptions options = options_for(false, kHalfKv);
  options.max_rows = 0;
  const auto open = [&](uint64_t budget) {
    options.device_bytes = budget;
    return Loaded::open(folder, cuda::compile, options);
  };
  uint64_t too_little = 0, enough = uint64_t{1} << 32;
  while (enough - too_little > uint64_t{1} << 20) {
    const uint64_t middle = (too_little + enough) / 2;
    (open(middle) ? enough : too_little) = middle;
  }
  std::vector<std::vector<std::vector<float>>> found;
  std::vector<uint64_t> scratch;
  for (const uint64_t budget : {uint64_t{0}, enough + (uint64_t{16} << 20)}) {
    auto loaded = open(budget);
    ASSERT_TRUE(loaded) << loaded.error().message;
    Executable& card = **loaded;
    const auto draws = card.prepare_draws({});
    ASSERT_TRUE(draws && *draws);
    std::vector<Sequence> sequences;
    std::vector<Part> parts;
    for (int i = 0; i < 5; ++i) sequences.push_back(new_sequence(card));
    for (int i = 0; i < 5; ++i) parts.emplace_back(&sequences[i], std::span(tokens).subspan(16 * i, 16));
    found.push_back(step(card, parts));
    scratch.push_back(card.scratch_bytes());
  }
  EXPECT_EQ(found[0], found[1]);
  EXPECT_LT(scratch[1], scratch[0]);
}

// 64K positions of q8_0 keys and q4_0 values beside the weights of the model that 16 GiB cards are bought for. The
// context's bytes are those of an H200.
TEST(CudaExecutable, AModelOfTrueSizeFitsSixteenGibibytes) {
  auto source = models::synthetic_source("qwen3.5-35b-a3b");
  ASSERT_TRUE(source);
  const auto program = models::build_program(**source);
  ASSERT_TRUE(program);
  const auto layout =
      StateLayout::create(program->kv_layers, program->recurrent_layers, {DType::Q8_0, DType::Q4_0, false});
  ASSERT_TRUE(layout);
  const cuda::ProgramBinding binding(*program);
  cuda::DeviceInfo device;
  device.sm = 90;
  device.n_sms = 132;
  const cuda::Lowering lowering(*program, *layout, binding, device, false, default_max_rows(*program, kDecodeTokens),
                                kDecodeTokens);
  constexpr uint64_t kMiB = uint64_t{1} << 20, kContext = 527 * kMiB, kSmallThings = 16 * kMiB;
  const uint64_t pages = 65536 / kPageTokens * layout->page_bytes();
  const uint64_t needed = binding.size_bytes() + lowering.working_bytes() + pages +
                          layout->recurrent_floats() * sizeof(float) + kContext + kSmallThings;
  EXPECT_LE(needed, 16384 * kMiB) << needed / kMiB;
}

}  // namespace
}  // namespace chimere
