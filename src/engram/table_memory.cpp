#include "engram/table_memory.h"

#include <algorithm>
#include <cmath>

namespace chimere::engram {
namespace {

constexpr float kSmallestShare = 0.005f;  // what is left for shorter keys when we stop looking
constexpr size_t kMaxPerKey = 32;         // continuations of one key that become entries
constexpr float kStandingLimit = 4;       // so that a long good or bad run is not held for ever

}  // namespace

const MixConstants kFitted = {
    .trust = {0, 0, 0.06f, 0.06f, 0.15f, 0.6f, 0.8f, 0.85f, 0.98f},
    .doubt = {0, 0, 7, 4, 1.5f, 3, 3, 3, 1},
    .entropy_half = 1.8f,
    .entropy_memory = 0.5f,
    .standing_start = 1.6f,
    .standing_memory = 0.97f,
    .standing_slope = 2.0f,
};

TableMemory::TableMemory(std::vector<WeightedTable> tables, MixOptions options, const MixConstants& constants)
    : tables_(std::move(tables)), options_(options), constants_(constants) {}

float TableMemory::strength() const {
  const float entropy = entropy_ < 0 ? 4 * constants_.entropy_half : entropy_;
  const float need = entropy / (entropy + constants_.entropy_half);
  const float standing = 1 / (1 + std::exp(-(constants_.standing_start + constants_.standing_slope * standing_)));
  return options_.alpha * need * standing;
}

float TableMemory::add_claims(const WeightedTable& weighted, const NgramContext& context) {
  const NgramSource& table = *weighted.table;
  table.prefetch(context);
  float left = 1;
  for (int order = std::min(table.max_order(), context.length); order >= table.min_order(); --order) {
    if (!table.find(context, order, hit_)) continue;
    const auto total = static_cast<float>(hit_.total), distinct = static_cast<float>(hit_.distinct);
    const float share = left * constants_.trust[order] * total / (total + constants_.doubt[order] * distinct);
    for (const Hit::Next& next : std::span(hit_.next).first(std::min(hit_.next.size(), kMaxPerKey))) {
      entries_.push_back({next.token, next.count / total, share});
    }
    left -= share;
    if (left < kSmallestShare) break;
  }
  return 1 - left;
}

std::span<const MemoryEntry> TableMemory::expect(std::span<const int32_t> tokens, bool in_thought) {
  entries_.clear();
  if (options_.alpha <= 0 || (in_thought && !options_.in_thoughts)) return {};
  const Table::Context context = Table::context_of(tokens);
  const float strength = this->strength();
  ends_.clear();
  float kept = 1, claimed = 0;
  for (const WeightedTable& table : tables_) {
    const float factor = std::min(1.0f, table.weight * strength);
    const float share = factor * add_claims(table, context);
    ends_.push_back({entries_.size(), factor});
    kept *= 1 - share;
    claimed += share;
  }
  // Claims of several tables add up to more than they claim together; they shrink in proportion.
  const float shrink = claimed > 0 ? (1 - kept) / claimed : 0;
  size_t at = 0;
  for (const auto& [end, factor] : ends_) {
    for (; at < end; ++at) entries_[at].weight *= factor * shrink;
  }
  return entries_;
}

void TableMemory::accept(const Sampled& token) {
  if (entries_.empty() || !std::isfinite(token.logprob) || !std::isfinite(token.entropy)) return;
  const float keep = entropy_ < 0 ? 0 : constants_.entropy_memory;
  entropy_ = keep * entropy_ + (1 - keep) * token.entropy;
  const auto gain = static_cast<float>(mixed_logprob(token.logprob, token.id, entries_) - token.logprob);
  standing_ = std::clamp(constants_.standing_memory * standing_ + gain, -kStandingLimit, kStandingLimit);
  entries_.clear();
}

}  // namespace chimere::engram
