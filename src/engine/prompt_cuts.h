// prompt_cuts.h  Where a prompt is cut into slices, and where its state is kept.
//
// Both follow from the tokens alone, never from what is cached or who else is in the batch: the same prompt is always
// computed by the same arithmetic, and so is the same beginning of two prompts (backend/ops.h, prefill class).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chimere::engine {

// Points closer than this to the one kept before them are passed over, but for the last one: each cut is a step, and
// reading a few tokens again is cheaper than many short steps.
inline constexpr int32_t kMinSliceTokens = 32;

struct PromptCuts {
  std::vector<int32_t> cuts;     // ends of slices before the last one, ascending
  std::vector<int32_t> keep;     // those worth a snapshot
  std::vector<int32_t> fillers;  // of `keep`, those that are only far from others
};

// points: Request::snapshot_points, those outside of the prompt are ignored. grid: the longest slice.
// filler_tokens: a snapshot at least every so many tokens; a multiple of grid.
PromptCuts cut_prompt(int32_t n_prompt, std::span<const int32_t> points, int32_t grid, int32_t filler_tokens);

}  // namespace chimere::engine
