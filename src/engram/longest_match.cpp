#include "engram/longest_match.h"

#include <algorithm>

#include "engram/table.h"

namespace chimere::engram {
namespace {

// The longest key that a table knows, or 0.
int longest_hit(std::span<const std::shared_ptr<const NgramSource>> tables, const NgramContext& context, int min_order,
                Hit& hit) {
  for (const auto& table : tables) table->prefetch(context);
  for (int order = context.length; order >= min_order; --order) {
    for (const auto& table : tables) {
      if (order <= table->max_order() && order >= table->min_order() && table->find(context, order, hit)) return order;
    }
  }
  return 0;
}

}  // namespace

std::vector<Expected> longest_match(std::span<const std::shared_ptr<const NgramSource>> tables,
                                    std::span<const int32_t> tokens, const DraftOptions& options) {
  const size_t known = std::min<size_t>(tokens.size(), kMaxOrder);
  std::vector<int32_t> all(tokens.end() - static_cast<std::ptrdiff_t>(known), tokens.end());
  std::vector<Expected> expected;
  Hit hit;
  for (int i = 0; i < options.max_tokens; ++i) {
    const int order = longest_hit(tables, Table::context_of(all), options.min_order, hit);
    if (order == 0) break;
    const Hit::Next& best = hit.next.front();
    if (best.count < options.min_share * static_cast<float>(hit.total)) break;
    all.push_back(best.token);
    expected.push_back({best.token, order});
  }
  return expected;
}

}  // namespace chimere::engram
