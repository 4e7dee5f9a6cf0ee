// experts_choice.h  Which kernels the experts of a decode-class mixture take: from shapes and the card alone.
//
//   kernel      rows   where
//   one_row     1      moe_one_up.h and moe_one_down.h, which have to agree on the form of the hidden row
//   few_rows    2..7   the same for each choice of each row (moe_few_up.h, moe_few_down.h)
//   ring        any    weights through a ring of slots of each warp (moe_ring.h)
//   any_format  any    formats without kernels of their own, odd widths, no room, exact mode (moe_any.cu)
//
// A row's bits do not depend on the number of rows: one_row, few_rows and ring have one order of additions, any_format
// another, and the number does not decide between them.
#pragma once

#include "backend/cuda/kernels/common/card_facts.h"
#include "backend/cuda/kernels/experts/moe_plan.h"

namespace chimere::cuda {

enum class ExpertsKernel { one_row, few_rows, ring, any_format };

struct ProjectionChoice {
  ExpertsKernel kernel = ExpertsKernel::any_format;
  DType routed = DType::F32, shared = DType::F32;  // the formats that the kernel is compiled for; shared F32: any other
};
struct ExpertsChoice {
  ProjectionChoice up, down;
  int up_elements = 1;  // ring, several rows: hidden elements of a lane at a time
  // ring, several rows: the up-projection has their records in shared memory, and one block of kOneWarps an SM. From the
  // L2 cache they come late: a warp would wait for them as long as it works on its weights.
  bool near_records = false;
};

// The plan, and the kernels for it; plan.one_row and plan.few_rows say of both whether it is that one.
MoePlan plan_moe(const MoeArgs& args, const CardFacts& card);
ExpertsChoice choose_experts(const MoePlan& plan, const CardFacts& card);

// Rows of codebooks are short: more of them at a time cost less for each.
constexpr int most_up_elements(DType routed) { return routed == DType::IQ3_S ? 2 : 1; }
inline constexpr int kDownRows = 2;  // outputs of a lane
// Of many rows: how often a block goes on with the same rows of activations, which then come from the L1 cache.
int down_rounds(const MoePlan& plan);
constexpr int grouped_rows(DType routed) { return routed == DType::IQ3_S ? 2 * kDownRows : kDownRows; }

// Ring: bytes of a slot. `shared`: the kernel has the shared expert's format too.
uint32_t ring_up_slot(const MoePlan& plan, bool shared, int elements);
// Slots of a warp where the records of all rows are in shared memory too; none where there is no room.
inline constexpr int kNearChoices = kOneWarps;  // rows whose experts every block chooses, at most: a warp a row
int near_slots(const MoePlan& plan, const CardFacts& card, bool shared, int elements);
uint32_t ring_down_slot(const MoePlan& plan, bool shared, int rows);
// The experts' shares of a row's outputs, when there are few rows.
inline constexpr int kFewOutputs = 32;  // per block, at most
size_t few_shares_bytes(const MoePlan& plan);

// One row: what a block keeps in shared memory, as offsets, and the end. Without slots when there is no room.
inline constexpr int kOneElements = kGroup / kOneWarps;  // up: of a warp, in a group
inline constexpr int kOneOutputs = 2,
                     kOneOwnOutputs = 1;  // down: of a lane, at a time: of a choice, of the shared expert
static_assert(kOneElements == 2);

struct OneUpRoom {
  int groups = 0, own_groups = 0, groups_an_expert = 0;
  int blocks = 0, n_slots = 0;
  uint32_t slot_bytes = 0, slots = 0, record = 0, values = 0, bytes = 0;
};
OneUpRoom one_up_room(const MoePlan& plan, const CardFacts& card);

// The same of a few rows; `units` are groups of every row and choice, and of every row and the shared expert.
struct FewUpRoom {
  int units = 0, shared_groups = 0, groups_an_expert = 0;
  int blocks = 0, n_slots = 0;
  int down_blocks = 0;      // of the down-projection
  bool prefetches = false;  // its weights to the L2 cache
  uint32_t slot_bytes = 0, slots = 0, records = 0, values = 0, bytes = 0;
};
FewUpRoom few_up_room(const MoePlan& plan, const CardFacts& card);

// One row or a few.
struct OneDownRoom {
  int blocks = 0, n_slots = 0;
  uint32_t slot_bytes = 0, slots = 0, record = 0, shares = 0, bytes = 0;
};
OneDownRoom one_down_room(const MoePlan& plan, const CardFacts& card);

}  // namespace chimere::cuda
