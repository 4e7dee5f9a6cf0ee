// moe_plan.h  What the expert kernels are launched with.
#pragma once

#include "backend/cuda/kernels/moe.h"

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
  bool one_row = false;          // the kernels of moe_one.h
  bool choice_by_block = false;  // of one row: the router leaves logits, every block of the others chooses for itself
};
// At most, where blocks choose: experts, and those that a row goes through.
inline constexpr int kBlockExperts = 256, kBlockUsed = 16;
inline constexpr int kRouterBatch = 8;  // rows of activations of a router block

}  // namespace chimere::cuda
