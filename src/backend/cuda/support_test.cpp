#include "backend/cuda/support.h"

#include <gtest/gtest.h>

namespace chimere::cuda {
namespace {

TEST(Support, NamesWhatIsMissing) {
  const auto refusal = [](Op op) {
    Program program;
    program.ops = {op::Embed{0, 0}, std::move(op)};
    Status s = check_supported(program);
    return s ? std::string() : s.error().message;
  };
  EXPECT_EQ(refusal(op::GdnMix{}), "");
  EXPECT_EQ(refusal(op::Attention{}), "");
  EXPECT_EQ(refusal(op::MoeFfn{}), "");
  EXPECT_EQ(refusal(op::Mamba2Mix{}), "");
  EXPECT_EQ(refusal(op::SelectiveScan{}), "");
  EXPECT_EQ(refusal(op::LayerNorm{}), "");
  op::MoeFfn adaptive{};
  adaptive.n_used = 4;
  adaptive.n_least = 2;
  EXPECT_NE(refusal(adaptive).find("number of experts"), std::string::npos);
  op::Attention stores{};
  stores.q = kNone;
  EXPECT_EQ(refusal(stores), "");
}

}  // namespace
}  // namespace chimere::cuda
