#include "orchestrator/snapshot_points.h"

namespace chimere::orchestrator {

std::vector<int32_t> snapshot_points(const Tokenizer& tokenizer, std::string_view generation_prompt,
                                     std::span<const int32_t> prompt) {
  int32_t opener = -1;
  for (const int32_t id : tokenizer.encode(generation_prompt, EncodeMode::special, false)) {
    if (!tokenizer.is_control(id)) continue;
    opener = id;
    break;
  }
  std::vector<int32_t> points;
  for (size_t i = 1; i < prompt.size(); ++i) {
    if (opener >= 0 ? prompt[i] == opener : tokenizer.is_control(prompt[i])) points.push_back(static_cast<int32_t>(i));
  }
  return points;
}

}  // namespace chimere::orchestrator
