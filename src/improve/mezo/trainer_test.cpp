// Adapters that learn: the loss falls, a run that was stopped gives the same bits, what cannot be learned from is refused.
#include "improve/mezo/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "models/adapter_file.h"
#include "models/adapter_for_test.h"

namespace chimere::improve {
namespace {

using fixture::fs::path;

constexpr const char* kTied = "llama-spm";

std::string bytes_in(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Trainer : public testing::TestWithParam<TrainMethod> {
 protected:
  void SetUp() override {
    scratch_ = fixture::scratch_folder();
    model_ = fixture::load(fixture::kept("qwen3_5-A"), models::BackendKind::cpu, false);
    ASSERT_TRUE(model_);
    for (int i = 0; i < 6; ++i) {
      Example e;
      // A question of some tokens, of which the first decides the answer.
      e.tokens = {10 + i % 3, 20, 21, 22, 40 + i % 3, 50, 51};
      e.answer_from = 4;
      examples_.push_back(e);
    }
  }
  void TearDown() override { fixture::fs::remove_all(scratch_); }

  TrainOptions options() const {
    TrainOptions o;
    o.method = GetParam();
    o.own_text = 0;
    o.rank = 4;
    o.steps = GetParam() == TrainMethod::head ? 60 : 40;
    o.batch = GetParam() == TrainMethod::head ? 8 : 3;
    o.learning_rate = GetParam() == TrainMethod::head ? 2e-2f : 1e-2f;
    return o;
  }
  std::string file(const char* name) const { return (scratch_ / name).string(); }
  TrainReport train(const TrainOptions& o, const std::string& out, const TrainProgress& progress = {}) {
    auto report = train_adapter(*model_, examples_, o, out, progress);
    EXPECT_TRUE(report) << report.error().message;
    return report ? *report : TrainReport{};
  }

  path scratch_;
  std::unique_ptr<models::Model> model_;
  std::vector<Example> examples_;
};

TEST_P(Trainer, TheLossFallsAndTheFileGivesTheLearnedLogits) {
  const TrainReport report = train(options(), file("a.gguf"));
  EXPECT_TRUE(report.is_finished);
  EXPECT_EQ(report.curve.size(), static_cast<size_t>(options().steps));
  EXPECT_GT(report.tokens, 0u);
  // By far for the head, whose gradient is exact; by something for pairs of passes.
  EXPECT_LT(report.loss_after, report.loss_before - (GetParam() == TrainMethod::head ? 2.0 : 0.02));
  const auto before = score_examples(*model_, examples_, ""),
             after = score_examples(*model_, examples_, file("a.gguf"));
  ASSERT_TRUE(before && after);
  EXPECT_NEAR(before->loss, report.loss_before, 1e-5);
  EXPECT_NEAR(after->loss, report.loss_after, 1e-5) << "the file is not what was learned";
}

TEST_P(Trainer, ARunThatWasStoppedAnywhereGivesTheSameBits) {
  train(options(), file("whole.gguf"));
  const std::string whole = bytes_in(file("whole.gguf"));
  ASSERT_FALSE(whole.empty());
  for (const int stop : {1, 7, options().steps - 1}) {
    TrainOptions o = options();
    o.checkpoint = file("checkpoint");
    const TrainReport stopped = train(o, file("part.gguf"), [&](const TrainStep& s) { return s.step != stop; });
    EXPECT_FALSE(stopped.is_finished);
    EXPECT_FALSE(fixture::fs::exists(file("part.gguf")));
    // As a process that was killed while it wrote leaves it.
    if (GetParam() == TrainMethod::mezo) std::ofstream(o.checkpoint, std::ios::app | std::ios::binary) << "half a rec";
    const TrainReport rest = train(o, file("part.gguf"));
    EXPECT_EQ(rest.resumed_at, stop);
    EXPECT_EQ(bytes_in(file("part.gguf")), whole) << "stopped after " << stop;
    EXPECT_FALSE(fixture::fs::exists(o.checkpoint));
    fixture::fs::remove(file("part.gguf"));
  }
}

TEST_P(Trainer, CheckpointsOfAnotherRunAreRefused) {
  TrainOptions o = options();
  o.checkpoint = file("checkpoint");
  train(o, file("a.gguf"), [](const TrainStep&) { return false; });
  o.seed = 2;
  const auto other = train_adapter(*model_, examples_, o, file("a.gguf"));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("another run"), std::string::npos) << other.error().message;
}

TEST_P(Trainer, TimeIsALimitAndWhatWasLearnedIsWritten) {
  TrainOptions o = options();
  o.seconds = 1e-9;
  const TrainReport report = train(o, file("a.gguf"));
  EXPECT_TRUE(report.is_finished && report.ran_out_of_time);
  EXPECT_LT(report.curve.size(), static_cast<size_t>(o.steps));
  EXPECT_TRUE(fixture::fs::exists(file("a.gguf")));
}

TEST_P(Trainer, GoesOnFromAnAdapterAndKeepsTheRestOfIt) {
  TrainOptions other = options();
  other.method = GetParam() == TrainMethod::head ? TrainMethod::mezo : TrainMethod::head;
  other.targets = "attn_q";
  other.learning_rate = 1e-2f;
  const TrainReport first = train(other, file("first.gguf"));
  TrainOptions o = options();
  o.start = file("first.gguf");
  o.targets = "attn_q";
  const TrainReport second = train(o, file("second.gguf"));
  EXPECT_LT(second.loss_after, first.loss_after);
  const auto adapter = gguf::File::open(file("second.gguf"));
  ASSERT_TRUE(adapter);
  EXPECT_TRUE(adapter->find("output.weight.lora_a"));
  bool has_q = false;
  for (const TensorView& t : adapter->tensors()) has_q |= t.name.find("attn_q.weight.lora_b") != t.name.npos;
  EXPECT_TRUE(has_q);
}

TEST_P(Trainer, WhatIsKeptStays) {
  Example kept;
  kept.tokens = {60, 61, 62, 63, 64, 65, 66, 67};
  kept.is_kept = true;
  examples_.push_back(kept);
  TrainOptions held = options(), free = options();
  held.keep = 10;
  free.keep = 0;
  const TrainReport with = train(held, file("a.gguf")), without = train(free, file("b.gguf"));
  EXPECT_GE(with.kept_divergence, 0);
  EXPECT_LT(with.kept_divergence, without.kept_divergence);
}

TEST_P(Trainer, ALossThatIsNoNumberEndsTheRun) {
  const auto values = std::vector<float>(1 << 16, 1e30f);
  const TensorView* head = nullptr;
  const auto model = gguf::File::open((fixture::kept("qwen3_5-A") / "model.gguf").string());
  ASSERT_TRUE(model);
  for (const char* name : {"token_embd.weight", "output.weight"}) {
    if (model->find(name)) head = model->find(name);
  }
  gguf::Writer writer;
  writer.metadata().set_string("general.type", "adapter");
  writer.metadata().set_string("general.architecture", model_->architecture());
  writer.metadata().set_string("adapter.type", "lora");
  const auto tensor = [&](const char* name, uint64_t a, uint64_t b) {
    ASSERT_LE(a * b, values.size());
    ASSERT_TRUE(writer.add_tensor(name, DType::F32, {a, b, 1, 1}, fixture::bytes_of(values).first(a * b * 4)));
  };
  tensor("output.weight.lora_a", head->ne[0], 1);
  tensor("output.weight.lora_b", 1, head->ne[1]);
  ASSERT_TRUE(writer.write_file(file("huge.gguf")));
  TrainOptions o = options();
  o.start = file("huge.gguf");
  const auto report = train_adapter(*model_, examples_, o, file("a.gguf"));
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("no number"), std::string::npos) << report.error().message;
  EXPECT_FALSE(fixture::fs::exists(file("a.gguf")));
}

INSTANTIATE_TEST_SUITE_P(Methods, Trainer, testing::Values(TrainMethod::head, TrainMethod::mezo),
                         [](const auto& info) { return info.param == TrainMethod::head ? "head" : "mezo"; });

TEST(TrainerLimits, WhatCannotBeLearnedFromIsRefused) {
  const path scratch = fixture::scratch_folder();
  const auto model = fixture::load(fixture::kept(kTied), models::BackendKind::cpu, false);
  ASSERT_TRUE(model);
  const auto expect = [&](const std::string& word, const std::vector<Example>& examples, TrainOptions o = {}) {
    o.own_text = 0;
    const auto report = train_adapter(*model, examples, o, (scratch / "a.gguf").string());
    ASSERT_FALSE(report) << word;
    EXPECT_NE(report.error().message.find(word), std::string::npos) << report.error().message;
    EXPECT_FALSE(fixture::fs::exists(scratch / "a.gguf"));
  };
  const Example good{{5, 6, 7}, 1};
  expect("found none", {});
  expect("example 2", {good, {{5, 6, 7}, 3}});
  expect("example 1", {{{5}, 0}});
  expect("outside the vocabulary", {{{5, 1 << 30}, 1}});
  expect("outside the vocabulary", {{{-1, 5}, 1}});
  expect("weight", {{{5, 6}, 1, NAN}});
  expect("none is learned", {{{5, 6}, 1, 1, true}});
  expect("32768", {{std::vector<int32_t>(40'000, 5), 1}});
  TrainOptions o;
  o.rank = 0;
  expect("rank", {good}, o);
  o = {};
  o.method = TrainMethod::mezo;
  o.targets = "no_such_matrix";
  expect("no_such_matrix", {good}, o);
  o.targets = "(";
  expect("regular expression", {good}, o);
  o = {};
  o.learning_rate = NAN;
  expect("learning rate", {good}, o);
  o = {};
  o.start = (scratch / "none.gguf").string();
  expect("none.gguf", {good}, o);
  fixture::fs::remove_all(scratch);
}

// Of a model whose table of embeddings is its head, too: inputs stay as they are. An example of many slices.
TEST(TrainerLimits, LongExamplesAndTiedHeads) {
  const path scratch = fixture::scratch_folder();
  const auto model = fixture::load(fixture::kept(kTied), models::BackendKind::cpu, false);
  ASSERT_TRUE(model);
  Example e;
  for (int i = 0; i < 200; ++i) e.tokens.push_back(5 + i % 7);
  e.answer_from = 100;
  TrainOptions o;
  o.own_text = 50;
  o.steps = 30;
  const std::vector<Example> examples = {e, {{5, 6, 7, 8}, 2}};
  const auto report = train_adapter(*model, examples, o, (scratch / "a.gguf").string());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_LT(report->loss_after, report->loss_before - 0.5);
  const auto score = score_examples(*model, examples, (scratch / "a.gguf").string());
  ASSERT_TRUE(score);
  EXPECT_EQ(score->tokens, 102u);
  EXPECT_NEAR(score->loss, report->loss_after, 1e-5);
  fixture::fs::remove_all(scratch);
}

}  // namespace
}  // namespace chimere::improve
