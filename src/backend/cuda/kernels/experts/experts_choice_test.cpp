// Which kernels the experts take: pinned for the shapes of real models and for the edges between kernels.
#include "backend/cuda/kernels/experts/experts_choice.h"

#include <gtest/gtest.h>

#include <string>

namespace chimere::cuda {
namespace {

constexpr CardFacts kHopper{true, 227 << 10, 132}, kAmpere{false, 163 << 10, 108}, kGaming{true, 99 << 10, 170};

struct Mixture {
  int width, d_ff, d_shared, n_experts, n_used;
  DType up, down, shared;
  bool gates = true;
};

Weight matrix(DType type, int width, int rows) {
  static uint8_t somewhere;
  Weight w;
  w.data = &somewhere;
  w.type = type;
  w.width = width;
  w.rows = rows;
  w.row_bytes = round_up_16(static_cast<uint32_t>(width) * (type == DType::F32 ? 4 : 2));
  with_format(type, [&](auto f) { w.row_bytes = decltype(f)::row_bytes(static_cast<uint32_t>(width / kGroup)); });
  return w;
}

MoeArgs mixture(const Mixture& m, int n_rows) {
  MoeArgs a;
  a.in.width = m.width;
  a.n_rows = n_rows;
  a.n_used = m.n_used;
  a.router = matrix(DType::F32, m.width, m.n_experts);
  if (m.gates) a.gate = matrix(m.up, m.width, m.d_ff);
  a.up = matrix(m.up, m.width, m.d_ff);
  a.down = matrix(m.down, m.d_ff, m.width);
  if (m.d_shared == 0) return a;
  if (m.gates) a.shared_gate = matrix(m.shared, m.width, m.d_shared);
  a.shared_up = matrix(m.shared, m.width, m.d_shared);
  a.shared_down = matrix(m.shared, m.d_shared, m.width);
  return a;
}

ExpertsChoice choose(const MoeArgs& a, const CardFacts& card) { return choose_experts(plan_moe(a, card), card); }

struct Case {
  const char* what;
  Mixture of;
  int n_rows;
  CardFacts card;
  ExpertsKernel up, down;
  int up_elements = 1;
};

constexpr Mixture kQwen{2048, 512, 512, 256, 8, kIq3Wide, kIq3Wide, DType::Q5_K};
constexpr Mixture kCompact{2048, 512, 512, 256, 8, DType::IQ3_S, DType::IQ3_S, DType::Q5_K};
constexpr Mixture kNext{2048, 512, 512, 512, 10, DType::Q4_K, DType::Q4_K, DType::Q4_K};
constexpr Mixture kNemotron{2688, 1856, 3712, 128, 6, DType::Q4_0, DType::Q4_0, DType::Q4_0, false};
constexpr ExpertsKernel kOne = ExpertsKernel::one_row, kFew = ExpertsKernel::few_rows, kRing = ExpertsKernel::ring,
                        kAny = ExpertsKernel::any_format;

const Case kCases[] = {
    {"Qwen3.5-35B-A3B", kQwen, 1, kHopper, kOne, kOne},
    {"Qwen3.5-35B-A3B, two rows", kQwen, 2, kHopper, kFew, kFew},
    {"Qwen3.5-35B-A3B, seven rows", kQwen, 7, kHopper, kFew, kFew},
    {"Qwen3.5-35B-A3B, eight rows", kQwen, 8, kHopper, kRing, kRing},
    {"Qwen3.5-35B-A3B, four rows", kQwen, 4, kGaming, kRing, kRing},
    {"Qwen3.5-35B-A3B, four rows", kQwen, 4, kAmpere, kRing, kRing},
    {"Qwen3.5-35B-A3B, 33 rows", kQwen, 33, kHopper, kRing, kRing},
    {"Qwen3.5-35B-A3B", kQwen, 1, kGaming, kOne, kOne},
    {"Qwen3.5-35B-A3B", kQwen, 1, kAmpere, kRing, kRing},
    {"compact codes", kCompact, 1, kHopper, kOne, kOne},
    {"compact codes, four rows", kCompact, 4, kHopper, kFew, kFew},
    {"compact codes, 33 rows", kCompact, 33, kHopper, kRing, kRing, 2},
    {"Nemotron 3 Nano", kNemotron, 1, kHopper, kOne, kOne},
    {"Nemotron 3 Nano, 5 rows", kNemotron, 5, kHopper, kFew, kFew},
    {"Nemotron 3 Nano, 8 rows", kNemotron, 8, kHopper, kRing, kRing},
    // Blocks choose among 256 experts at most.
    {"Qwen3-Next", kNext, 1, kHopper, kRing, kRing},
    {"Qwen3-Next, 2 rows, for which the router chooses", kNext, 2, kHopper, kFew, kFew},
    {"Qwen3-Next, 33 rows", kNext, 33, kHopper, kRing, kRing},
    {"17 used", {2048, 512, 0, 256, 17, DType::Q4_K, DType::Q4_K, DType::F32}, 1, kHopper, kRing, kRing},
    // Formats.
    {"a shared expert of halves", {2048, 512, 512, 256, 8, kIq3Wide, kIq3Wide, DType::F16}, 1, kHopper, kRing, kRing},
    {"no shared expert", {2048, 512, 0, 128, 4, DType::MXFP4, DType::MXFP4, DType::F32}, 1, kHopper, kOne, kOne},
    {"gpt-oss: no room for slots of one row",
     {2880, 2880, 0, 128, 4, DType::MXFP4, DType::MXFP4, DType::F32},
     1,
     kHopper,
     kRing,
     kRing},
    {"no kernels", {2048, 512, 512, 256, 8, DType::IQ2_XXS, DType::IQ2_XXS, DType::Q5_K}, 1, kHopper, kAny, kAny},
    {"none for one of them", {2048, 512, 512, 256, 8, DType::Q4_K, DType::Q3_K, DType::Q4_K}, 1, kHopper, kRing, kAny},
    // Widths.
    {"an odd number of groups", {96, 96, 0, 16, 4, DType::Q8_0, DType::Q8_0, DType::F32}, 1, kHopper, kAny, kAny},
    {"hidden elements in no groups",
     {2048, 528, 0, 16, 4, DType::Q8_0, DType::F16, DType::F32},
     1,
     kHopper,
     kRing,
     kAny},
};

TEST(ExpertsChoice, IsPinned) {
  for (const Case& c : kCases) {
    const ExpertsChoice choice = choose(mixture(c.of, c.n_rows), c.card);
    const std::string which = std::string(c.what) + ", " + std::to_string(c.card.n_sms) + " SMs";
    EXPECT_EQ(choice.up.kernel, c.up) << which;
    EXPECT_EQ(choice.down.kernel, c.down) << which;
    EXPECT_EQ(choice.up_elements, c.up_elements) << which;
  }
}

TEST(ExpertsChoice, HangsOnTheRouterAndOnTheMode) {
  MoeArgs a = mixture(kQwen, 1);
  const float bias = 0;
  a.style.selection_bias = &bias;  // of a softmax: keys need the scores of all experts
  EXPECT_EQ(choose(a, kHopper).up.kernel, kRing);
  a.style.gating = op::Gating::sigmoid;
  EXPECT_EQ(choose(a, kHopper).up.kernel, kOne);
  a.exact = true;
  EXPECT_EQ(choose(a, kHopper).up.kernel, kAny);
  EXPECT_EQ(choose(a, kHopper).down.kernel, kAny);
  a = mixture(kQwen, 1);
  a.gate = matrix(DType::Q8_0, 2048, 512);  // another format than up
  EXPECT_EQ(choose(a, kHopper).up.kernel, kAny);
  EXPECT_EQ(choose(a, kHopper).down.kernel, kRing);
}

// Blocks of both kernels of a few rows, and of the down-projection and the next layer's projections, stand on an SM side
// by side (they take 139 KB for two rows and 149 for four, and one KB of arrays).
TEST(ExpertsChoice, SlotsOfAFewRowsLeaveRoomForTheNextKernel) {
  constexpr uint32_t kSm = 228 << 10, kBeside = 3 << 10;
  struct {
    int n_rows, up, down;
  } const slots[] = {{2, 3, 2}, {3, 2, 2}, {4, 2, 2}, {6, 2, 2}};
  for (const auto& [n_rows, n_up, n_down] : slots) {
    const MoePlan plan = plan_moe(mixture(kQwen, n_rows), kHopper);
    const FewUpRoom up = few_up_room(plan, kHopper);
    const OneDownRoom down = one_down_room(plan, kHopper);
    EXPECT_EQ(up.n_slots, n_up) << n_rows;
    EXPECT_EQ(down.n_slots, n_down) << n_rows;
    EXPECT_LE(up.bytes + down.bytes + 2 * kBeside, kSm) << n_rows;
    EXPECT_GT(2 * (up.bytes + kBeside), kSm) << n_rows;
    EXPECT_EQ(down.bytes + (140 << 10) + 2 * kBeside <= kSm, n_rows == 2);
  }
  // No room for both: as many as each has alone.
  const MoePlan plan = plan_moe(mixture(kQwen, 7), kHopper);
  EXPECT_EQ(few_up_room(plan, kHopper).n_slots, 3);
  EXPECT_EQ(one_down_room(plan, kHopper).n_slots, 3);
}

// Where the records of several rows lie, and who chooses for them.
TEST(ExpertsChoice, RecordsOfManyRowsLieNear) {
  struct {
    Mixture of;
    int n_rows;
    CardFacts card;
    int slots;
    bool by_block;
  } const cases[] = {{kQwen, 8, kHopper, 4, true},      {kQwen, 16, kHopper, 3, true},  {kQwen, 17, kHopper, 3, false},
                     {kQwen, 32, kHopper, 3, false},    {kQwen, 48, kHopper, 0, false}, {kQwen, 64, kHopper, 0, false},
                     {kCompact, 32, kHopper, 0, false}, {kNext, 8, kHopper, 4, false},  {kQwen, 8, kGaming, 0, false},
                     {kQwen, 32, kAmpere, 0, false}};
  for (const auto& c : cases) {
    const MoePlan plan = plan_moe(mixture(c.of, c.n_rows), c.card);
    const ExpertsChoice choice = choose_experts(plan, c.card);
    EXPECT_EQ(choice.up.kernel, kRing);
    EXPECT_EQ(choice.near_records, c.slots > 0) << c.n_rows;
    EXPECT_EQ(near_slots(plan, c.card, true, choice.up_elements), c.slots) << c.n_rows;
    EXPECT_EQ(plan.choice_by_block, c.by_block) << c.n_rows;
  }
}

// The number of rows must not choose between orders of additions.
TEST(ExpertsChoice, RowsDoNotChangeTheOrderOfAdditions) {
  for (const CardFacts& card : {kHopper, kAmpere, kGaming}) {
    for (const Case& c : kCases) {
      const ExpertsChoice alone = choose(mixture(c.of, 1), card);
      for (const int n_rows : {2, 5, 17, 33}) {
        const ExpertsChoice more = choose(mixture(c.of, n_rows), card);
        EXPECT_EQ(more.up.kernel == kAny, alone.up.kernel == kAny) << c.what << n_rows;
        EXPECT_EQ(more.down.kernel == kAny, alone.down.kernel == kAny) << c.what << n_rows;
      }
    }
  }
}

}  // namespace
}  // namespace chimere::cuda
