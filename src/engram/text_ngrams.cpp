#include "engram/text_ngrams.h"

#include <algorithm>
#include <bit>

#include "engram/ngram_hash.h"
#include "engram/table_format.h"

namespace chimere::engram {
namespace {

constexpr size_t kFewestBuckets = 256;

uint64_t pair_hash(int32_t newest, int32_t before) {
  return stored_hash(fnv_add(fnv_add(kFnvBasis, static_cast<uint32_t>(newest)), static_cast<uint32_t>(before)));
}

}  // namespace

int TextNgrams::min_order() const { return kMinOrder; }
int TextNgrams::max_order() const { return kMaxOrder; }

uint32_t& TextNgrams::bucket(int32_t newest, int32_t before) {
  return newest_[pair_hash(newest, before) & (newest_.size() - 1)];
}

// `place`: of the token that followed.
void TextNgrams::index(uint32_t place) {
  if (place < 2 || tokens_[place] < 0 || tokens_[place - 1] < 0 || tokens_[place - 2] < 0) return;
  uint32_t& newest = bucket(tokens_[place - 1], tokens_[place - 2]);
  before_[place] = newest;
  newest = place;
}

void TextNgrams::add(std::span<const int32_t> tokens, float weight) {
  const auto first = static_cast<uint32_t>(tokens_.size());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  n_tokens_ += tokens.size();
  texts_.push_back({static_cast<uint32_t>(tokens_.size()), weight});
  tokens_.push_back(-1);
  before_.resize(tokens_.size(), kNowhere);
  if (newest_.size() >= tokens_.size()) {
    for (uint32_t place = first; place < tokens_.size(); ++place) index(place);
    return;
  }
  newest_.assign(std::max(kFewestBuckets, std::bit_ceil(2 * tokens_.size())), kNowhere);
  for (uint32_t place = 0; place < tokens_.size(); ++place) index(place);
}

float TextNgrams::weight_at(uint32_t place) const {
  const auto text =
      std::upper_bound(texts_.begin(), texts_.end(), place, [](uint32_t p, const Text& t) { return p < t.end; });
  return text->weight;
}

bool TextNgrams::find(const NgramContext& context, int order, Hit& hit) const {
  hit.next.clear();
  hit.total = 0;
  if (newest_.empty() || order < kMinOrder || order > context.length) return false;
  const auto& key = context.newest_first;
  const uint64_t hash = pair_hash(static_cast<int32_t>(key[0]), static_cast<int32_t>(key[1]));
  int places = 0;
  for (uint32_t place = newest_[hash & (newest_.size() - 1)]; place != kNowhere && places < kMaxPlaces;
       place = before_[place], ++places) {
    if (place < static_cast<uint32_t>(order)) continue;
    int same = 0;
    while (same < order && tokens_[place - 1 - same] == static_cast<int32_t>(key[same])) ++same;
    if (same < order) continue;
    const float weight = weight_at(place);
    if (weight <= 0) continue;
    const int32_t token = tokens_[place];
    const auto known =
        std::find_if(hit.next.begin(), hit.next.end(), [&](const Hit::Next& next) { return next.token == token; });
    if (known != hit.next.end()) {
      known->count += weight;
    } else {
      hit.next.push_back({token, weight});
    }
    hit.total += weight;
  }
  std::stable_sort(hit.next.begin(), hit.next.end(),
                   [](const Hit::Next& a, const Hit::Next& b) { return a.count > b.count; });
  hit.order = order;
  hit.distinct = static_cast<double>(hit.next.size());
  return !hit.next.empty();
}

uint64_t TextNgrams::count_keys() const {
  std::vector<uint64_t> hashes;
  for (size_t place = kMinOrder; place < tokens_.size(); ++place) {
    if (tokens_[place] < 0) continue;
    uint64_t hash = kFnvBasis;
    for (int order = 1; order <= kMaxOrder && static_cast<size_t>(order) <= place; ++order) {
      const int32_t token = tokens_[place - order];
      if (token < 0) break;
      hash = fnv_add(hash, static_cast<uint32_t>(token));
      if (order >= kMinOrder) hashes.push_back(stored_hash(hash));
    }
  }
  std::sort(hashes.begin(), hashes.end());
  return static_cast<uint64_t>(std::unique(hashes.begin(), hashes.end()) - hashes.begin());
}

}  // namespace chimere::engram
