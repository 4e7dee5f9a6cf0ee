#include "engram/longest_match.h"

#include <algorithm>

namespace chimere::engram {
namespace {

// The longest key that a table knows, or 0.
int longest_hit(std::span<const std::shared_ptr<const Table>> tables, const Table::Context& context, int min_order,
                Hit& hit) {
  for (int order = context.length; order >= min_order; --order) {
    for (const auto& table : tables) {
      if (table->find(context, order, hit)) return order;
    }
  }
  return 0;
}

}  // namespace

std::vector<int32_t> longest_match(std::span<const std::shared_ptr<const Table>> tables,
                                   std::span<const int32_t> tokens, const DraftOptions& options) {
  const size_t known = std::min<size_t>(tokens.size(), kMaxOrder);
  std::vector<int32_t> all(tokens.end() - static_cast<std::ptrdiff_t>(known), tokens.end());
  Hit hit;
  for (int i = 0; i < options.max_tokens; ++i) {
    if (longest_hit(tables, Table::context_of(all), options.min_order, hit) == 0) break;
    const Hit::Next& best = hit.next.front();
    if (best.count < options.min_share * static_cast<float>(hit.total)) break;
    all.push_back(best.token);
  }
  return {all.begin() + static_cast<std::ptrdiff_t>(known), all.end()};
}

}  // namespace chimere::engram
