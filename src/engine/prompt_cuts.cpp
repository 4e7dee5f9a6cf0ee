#include "engine/prompt_cuts.h"

#include <algorithm>

namespace chimere::engine {

PromptCuts cut_prompt(int32_t n_prompt, std::span<const int32_t> points, int32_t grid, int32_t filler_tokens) {
  std::vector<int32_t> inside;
  for (const int32_t p : points) {
    if (p > 0 && p < n_prompt && (inside.empty() || p > inside.back())) inside.push_back(p);
  }
  PromptCuts result;
  int32_t last_kept = 0;
  size_t next = 0;
  auto take_points_before = [&](int32_t end) {
    for (; next < inside.size() && inside[next] < end; ++next) {
      const bool is_last = next + 1 == inside.size();
      if (inside[next] - last_kept < kMinSliceTokens && !is_last) continue;
      result.cuts.push_back(last_kept = inside[next]);
      result.keep.push_back(last_kept);
    }
  };
  for (int64_t at = grid; at < n_prompt; at += grid) {
    const auto here = static_cast<int32_t>(at);
    take_points_before(here);
    result.cuts.push_back(here);
    const bool is_point = next < inside.size() && inside[next] == here;
    if (is_point) ++next;
    if (is_point || here % filler_tokens == 0) result.keep.push_back(last_kept = here);
    if (!is_point && here % filler_tokens == 0) result.fillers.push_back(here);
  }
  take_points_before(n_prompt);
  return result;
}

}  // namespace chimere::engine
