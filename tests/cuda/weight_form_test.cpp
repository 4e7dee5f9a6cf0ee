// The two forms that weights of IQ3_S have on a card: which one is taken, and that nothing but speed and bytes depends
// on it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/cuda/program_binding.h"
#include "backend/cuda/weights/format_table.h"
#include "models/compare_for_test.h"
#include "models/synthetic.h"
#include "parity/loaded_model.h"

namespace chimere {
namespace {

using namespace parity;  // NOLINT

constexpr int kWords = 256;

class WeightForm : public testing::Test {
 protected:
  void SetUp() override {
    auto source = models::synthetic_source("qwen3.5-tiny:iq3_s");
    ASSERT_TRUE(source) << source.error().message;
    source_ = std::move(*source);
  }

  // Of two layers and few words: the emulator is slow.
  Program program() const {
    auto program = models::build_program(*source_);
    EXPECT_TRUE(program) << program.error().message;
    for (const Op& op : program->ops) {
      if (const auto* embed = std::get_if<op::Embed>(&op)) program->matrices[embed->table].ne[1] = kWords;
      if (const auto* head = std::get_if<op::LmHead>(&op)) program->matrices[head->weight].ne[1] = kWords;
    }
    program->n_vocab = kWords;
    std::vector<std::ptrdiff_t> mixtures;
    for (size_t i = 0; i < program->ops.size(); ++i) {
      if (std::holds_alternative<op::MoeFfn>(program->ops[i])) mixtures.push_back(static_cast<std::ptrdiff_t>(i));
    }
    const auto first = program->ops.begin();
    program->ops.erase(first + mixtures[1] + 1, first + mixtures.back() + 1);
    return std::move(*program);
  }
  uint64_t bytes_of(cuda::PackForm form, int n_hosted = 0) const {
    return cuda::ProgramBinding(program(), {n_hosted}, form).size_bytes();
  }

  ExecutablePtr load(CompileFunction compile, uint64_t device_bytes, int cpu_moe = 0) const {
    LoadOptions options = options_for(false, kHalfKv, cpu_moe);
    options.device_bytes = device_bytes;
    auto executable = compile(program(), options);
    EXPECT_TRUE(executable) << executable.error().message;
    return std::move(*executable);
  }

  // A slice of a prompt, a few rows and single ones.
  static std::vector<float> logits_of(Executable& executable) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < (kSanitized ? 5 : 21); ++i) tokens.push_back(37 * i % kWords);
    return feed_alone(executable, tokens, {kSanitized ? 1 : 17, 2, 1});
  }
  void expect_near_oracle(const std::vector<float>& logits) const {
    const auto oracle = load(reference::compile, 0);
    EXPECT_LE(mean_divergence(logits_of(*oracle), logits, kWords), kFastDivergence);
  }

 private:
  std::unique_ptr<models::WeightSource> source_;
};

TEST_F(WeightForm, IsWideWhereHalfOfTheBudgetHoldsIt) {
  const uint64_t compact = bytes_of(cuda::PackForm::compact), wide = bytes_of(cuda::PackForm::wide);
  ASSERT_GT(wide, compact);
  const auto roomy = load(cuda::compile, 0);
  EXPECT_EQ(roomy->weight_bytes(), wide);
  // Twice the wide weights leave nothing for working memory in the half.
  const auto tight = load(cuda::compile, 2 * wide);
  EXPECT_EQ(tight->weight_bytes(), compact);
  uint64_t of_matrices[2] = {};
  for (MatrixId id = 0; id < static_cast<MatrixId>(roomy->program().matrices.size()); ++id) {
    const bool is_coded = roomy->program().matrices[id].type == DType::IQ3_S;
    EXPECT_EQ(roomy->matrix_bytes(id) > tight->matrix_bytes(id), is_coded) << roomy->program().matrices[id].name;
    of_matrices[0] += cuda::DeviceArena::padded(roomy->matrix_bytes(id));
    of_matrices[1] += cuda::DeviceArena::padded(tight->matrix_bytes(id));
  }
  EXPECT_EQ(of_matrices[0] - of_matrices[1], wide - compact);

  const std::vector<float> from_wide = logits_of(*roomy), from_compact = logits_of(*tight);
  // In builds of few formats the compact form has no kernels of its own, and sums in another order.
  if (cuda::has_kernels(DType::IQ3_S, cuda::kMatvecKernels)) {
    EXPECT_EQ(from_wide, from_compact);
  }
  expect_near_oracle(from_wide);
}

// Experts that stay in RAM have the host's form; what the card has left of them is wide.
TEST_F(WeightForm, IsOfTheCardAlone) {
  const auto executable = load(cuda::compile, 0, 1);
  EXPECT_GT(executable->weight_bytes(), bytes_of(cuda::PackForm::wide, 1));
  std::vector<bool> hosted, expected;
  for (MatrixId id = 0; id < static_cast<MatrixId>(executable->program().matrices.size()); ++id) {
    const TensorView& matrix = executable->program().matrices[id];
    if (matrix.type != DType::IQ3_S) continue;
    const uint64_t bytes = executable->matrix_bytes(id);
    EXPECT_TRUE(bytes == matrix.size_bytes() || bytes == packed_bytes(matrix, cuda::PackForm::wide)) << matrix.name;
    hosted.push_back(bytes == matrix.size_bytes());
    expected.push_back(hosted.size() <= 3);  // gate, up and down of the first mixture
  }
  ASSERT_GT(hosted.size(), 3u);
  EXPECT_EQ(hosted, expected);
  expect_near_oracle(logits_of(*executable));
}

}  // namespace
}  // namespace chimere
