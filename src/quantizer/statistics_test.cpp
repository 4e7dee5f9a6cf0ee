#include "quantizer/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/scratch_for_test.h"
#include "cache/sequence.h"
#include "quantizer/collect.h"
#include "quantizer/files_for_test.h"

namespace chimere::quantizer {
namespace {

Statistics two_experts() {
  Statistics s;
  s.matrices["blk.0.ffn_down_exps.weight"] = {2, {2, 8, 0, 0}, {2, 0}};
  s.matrices["output.weight"] = {3, {3, 6, 0}, {3}};
  s.datasets = {"a.txt"};
  s.n_chunks = 4;
  s.chunk_tokens = 512;
  return s;
}

TEST(Statistics, AreReadAsTheyWereWritten) {
  const auto bytes = statistics_bytes(two_experts());
  ASSERT_TRUE(bytes);
  const auto back = parse_statistics(*bytes, "x");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->datasets, std::vector<std::string>{"a.txt"});
  EXPECT_EQ(back->n_chunks, 4u);
  EXPECT_EQ(back->chunk_tokens, 512u);
  ASSERT_TRUE(back->find("blk.0.ffn_down_exps.weight"));
  EXPECT_EQ(back->find("blk.0.ffn_down_exps.weight")->sums, (std::vector<double>{2, 8, 0, 0}));
  EXPECT_EQ(back->find("output.weight")->counts, std::vector<double>{3});
}

TEST(Statistics, AddUp) {
  Statistics s = two_experts();
  ASSERT_TRUE(s.merge(two_experts()));
  EXPECT_EQ(s.find("output.weight")->sums, (std::vector<double>{6, 12, 0}));
  EXPECT_EQ(s.find("output.weight")->counts, std::vector<double>{6});
  EXPECT_EQ(s.n_chunks, 8u);
  EXPECT_EQ(s.datasets.size(), 1u);
  Statistics other;
  other.matrices["output.weight"] = {2, {1, 1}, {1}};
  const auto merged = s.merge(other);
  ASSERT_FALSE(merged);
  EXPECT_NE(merged.error().message.find("output.weight"), std::string::npos);
}

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto* p = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), p, p + sizeof(T));
}

std::vector<std::byte> old_form() {
  std::vector<std::byte> bytes;
  append<int32_t>(bytes, 1);
  append<int32_t>(bytes, 5);
  for (const char c : std::string("a.wei")) append(bytes, c);
  append<int32_t>(bytes, 2);
  append<int32_t>(bytes, 3);
  for (const float v : {2.0f, 4.0f, 8.0f}) append(bytes, v);
  return bytes;
}

TEST(Statistics, TheOlderFormIsReadAndEveryCutOfItRefused) {
  const std::vector<std::byte> bytes = old_form();
  const auto s = parse_statistics(bytes, "x");
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->find("a.wei")->sums, (std::vector<double>{2, 4, 8}));
  EXPECT_EQ(s->find("a.wei")->counts, std::vector<double>{2});
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(parse_statistics(std::span(bytes).first(n), "x")) << n;
}

TEST(Statistics, DamagedFilesAreRefused) {
  Statistics s = two_experts();
  s.matrices["output.weight"].sums[1] = NAN;
  const auto bytes = statistics_bytes(s);
  ASSERT_TRUE(bytes);
  const auto back = parse_statistics(*bytes, "x.imatrix");
  ASSERT_FALSE(back);
  EXPECT_NE(back.error().message.find("output.weight"), std::string::npos);
  EXPECT_FALSE(read_statistics(fixture::model_path()));  // a model is no imatrix
}

TEST(Statistics, ExpertsThatSawNothingGetTheMeanOfTheOthers) {
  const Statistics s = two_experts();
  const TensorView tensor{"blk.0.ffn_down_exps.weight", DType::F32, {2, 5, 2, 1}, nullptr};
  const ColumnWeights weights(&s, tensor);
  EXPECT_FLOAT_EQ(weights.of(0)[0], 1);
  EXPECT_FLOAT_EQ(weights.of(0)[1], 4);
  EXPECT_FLOAT_EQ(weights.of(1)[0], 1);
  EXPECT_FLOAT_EQ(weights.of(1)[1], 4);
  EXPECT_EQ(weights.share(0), 1);
  EXPECT_EQ(ColumnWeights(nullptr, tensor).of(0), nullptr);
  // A column that never moved keeps a little.
  const TensorView head{"output.weight", DType::F32, {3, 5, 1, 1}, nullptr};
  EXPECT_GT(ColumnWeights(&s, head).of(0)[2], 0);
}

TEST(Statistics, OfAnotherModelAreRefused) {
  const Statistics s = two_experts();
  const TensorView fits{"output.weight", DType::F32, {3, 5, 1, 1}, nullptr};
  const TensorView other{"output.weight", DType::F32, {4, 5, 1, 1}, nullptr};
  const TensorView unknown{"x.weight", DType::F32, {4, 5, 1, 1}, nullptr};
  EXPECT_TRUE(check_statistics(s, std::span(&fits, 1)));
  EXPECT_FALSE(check_statistics(s, std::span(&other, 1)));
  EXPECT_FALSE(check_statistics(s, std::span(&unknown, 1)));
}

// Keeps what the model itself reports as the input of its head, to compare the collected sums with.
class Collect : public testing::TestWithParam<const char*> {};

TEST_P(Collect, SeesEveryMatrixAndCountsRowsAndExperts) {
  InputCollector collector;
  LoadOptions options;
  options.exact = true;
  options.drafts = true;
  options.n_threads = 2;
  options.observe = collector.observer();
  const auto model = models::Model::load(fixture::model_path(GetParam()), models::BackendKind::cpu, options);
  ASSERT_TRUE(model) << model.error().message;
  std::vector<int32_t> tokens;
  for (int i = 0; i < 70; ++i) tokens.push_back((i * 37 + 5) % (*model)->n_vocab());
  ASSERT_TRUE(read_window(**model, tokens));

  const Statistics& s = collector.statistics;
  const Program& program = (*model)->executable().program();
  for (const Op& any : program.trunk()) {
    if (const auto* op = std::get_if<op::MatmulAdd>(&any)) {
      const InputSums* sums = s.find(program.matrices[static_cast<size_t>(op->weight)].name);
      ASSERT_TRUE(sums);
      EXPECT_EQ(sums->counts, std::vector<double>{70});
    }
    if (const auto* op = std::get_if<op::MoeFfn>(&any)) {
      const InputSums* up = s.find(program.matrices[static_cast<size_t>(op->up)].name);
      const InputSums* down = s.find(program.matrices[static_cast<size_t>(op->down)].name);
      ASSERT_TRUE(up && down);
      double all = 0;
      for (const double c : up->counts) all += c;
      EXPECT_EQ(all, 70.0 * op->n_used);
      EXPECT_EQ(up->counts, down->counts);
    }
  }

  // The head's inputs are the hidden states that the model gives out.
  std::vector<float> hidden(tokens.size() * static_cast<size_t>((*model)->d_model()));
  LoadOptions plain;
  plain.exact = true;
  plain.n_threads = 1;
  const auto again = models::Model::load(fixture::model_path(GetParam()), models::BackendKind::cpu, plain);
  ASSERT_TRUE(again);
  auto sequence = Sequence::create((*again)->executable());
  ASSERT_TRUE(sequence);
  std::vector<double> expected(static_cast<size_t>((*model)->d_model()), 0.0);
  for (const int32_t token : tokens) {
    auto slice = sequence->begin(1);
    ASSERT_TRUE(slice);
    Batch batch;
    batch.slices = {*slice};
    batch.tokens = {token};
    batch.logit_rows = {0};
    ASSERT_TRUE((*again)->executable().run(batch, {.hidden = hidden.data()}));
    ASSERT_TRUE(sequence->commit(1));
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += static_cast<double>(hidden[i]) * hidden[i];
  }
  const auto* head = std::get_if<op::LmHead>(&program.trunk().back());
  ASSERT_TRUE(head);
  const InputSums* sums = s.find(program.matrices[static_cast<size_t>(head->weight)].name);
  ASSERT_TRUE(sums);
  const double passes = program.has_drafts() ? 2 : 1;  // a draft pass has inputs of its own for the same head
  EXPECT_EQ(sums->counts, std::vector<double>{70 * passes});
  if (passes == 1) {
    // One token at a time and 70 at once differ in the last bits of floats, squared and summed.
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(sums->sums[i], expected[i], 1e-3 * expected[i] + 1e-6) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Collect, testing::Values("qwen3_5-A", "qwen3_5_moe-B-untied", "llama-spm"));

TEST(CollectRefused, OtherBackendsSayThatTheyCannot) {
  InputCollector collector;
  LoadOptions options;
  options.observe = collector.observer();
  const auto model = models::Model::load(fixture::model_path(), models::BackendKind::reference, options);
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("reference"), std::string::npos);
}

}  // namespace
}  // namespace chimere::quantizer
