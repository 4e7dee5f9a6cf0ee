// moe_plan.h  What the expert kernels are launched with.
#pragma once

#include "backend/cuda/kernels/experts/moe.h"

namespace chimere::cuda {

struct MoePlan {
  MoeArgs args;
  MoeScratch scratch;
  bool made_in = false;  // records were made by the router
  bool made_hidden = false;
  int hidden_width = 0;  // of a row of scratch.hidden
  int shared_at = 0;     // where the shared expert's elements begin in it
  // Of the lanes that share a row, a pair of groups each in the kernels of a format, a group each elsewhere.
  int log2_in = 5, log2_hidden = 5, log2_shared = 5;
  int any_log2_in = 5, any_log2_hidden = 5, any_log2_shared = 5;
  bool one_row = false;   // the kernels of moe_one_up.h and moe_one_down.h
  bool few_rows = false;  // those of moe_few_up.h and moe_few_down.h
  // Of one row, of a few, and where the records of more are near: the router leaves logits, every block of the
  // up-projection chooses, and of one row or a few those of the down-projection too.
  bool choice_by_block = false;
};

// Elements of a row of scratch.hidden.
int moe_hidden_width(const MoeArgs& args);

// At most, where blocks choose: experts, and those that a row goes through.
inline constexpr int kBlockExperts = 256, kBlockUsed = 16;
inline constexpr int kRouterBatch = 8;  // rows of activations of a router block

// Rows by expert in shared memory (moe_groups.h), for a number of experts and of rows times experts used: offsets, and
// the end.
//     uint2 [n_experts]     the rows that chose the expert
//     places [n_experts]    the first of its full chunks, and the one of the rest << 16
//     pairs [chunk][4]      row << kChoiceBits | choice
//     experts [chunk]       number of rows * kMoeExperts + expert
struct GroupRoom {
  uint32_t places = 0, pairs = 0, experts = 0, bytes = 0;

  GroupRoom() = default;
  CHIMERE_BOTH GroupRoom(int n_experts, int n_pairs) {
    const int whole_and_rest = n_pairs / kMoeChunk + n_experts;
    const auto most_chunks = static_cast<uint32_t>(n_pairs < whole_and_rest ? n_pairs : whole_and_rest);
    places = 8u * static_cast<uint32_t>(n_experts);
    pairs = places + 4u * static_cast<uint32_t>(n_experts);
    experts = pairs + 2u * kMoeChunk * most_chunks;
    bytes = (experts + 2u * most_chunks + 15u) / 16u * 16u;
  }
  explicit GroupRoom(const MoeArgs& a) : GroupRoom(a.router.rows, a.n_rows * a.n_used) {}
  // Whatever the number of rows.
  static uint32_t most(const MoeArgs& a) { return GroupRoom(a.router.rows, kMoePairs).bytes; }
};

}  // namespace chimere::cuda
