// bpe.cpp  Merging with a scan for short parts and a heap for long ones, and a cache of words.
#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <span>
#include <string>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/word_cache.h"

namespace chimere::tokenizer {
namespace {

// Up to here the quadratic scan is faster than a heap; beyond, only the heap is safe on hostile text.
constexpr size_t kShortPart = 48;
// Positions in a part are 32 bits wide.
constexpr size_t kMaxPart = size_t{1} << 30;

uint64_t hash_pair(int32_t left, int32_t right) {
  uint64_t h = (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right));
  h *= 0x9E3779B97F4A7C15;
  return h ^ h >> 31;
}

}  // namespace

Result<Bpe> Bpe::from_metadata(const gguf::Metadata& metadata, const Vocab& vocab) {
  TRY_ASSIGN(const std::span<const std::string> written, metadata.get_strings("tokenizer.ggml.tokens"));
  TRY_ASSIGN(const std::span<const std::string> merges, metadata.get_strings("tokenizer.ggml.merges"));
  Bpe bpe;
  bpe.pre_ = *PreTokenizer::named(vocab.pre);
  size_t n_bytes = 0;
  for (int32_t id = 0; id < vocab.size(); ++id) n_bytes += vocab.text(id).size();
  bpe.texts_.reserve(static_cast<size_t>(vocab.size()), n_bytes);
  bpe.symbols_.reserve(static_cast<size_t>(vocab.size()));
  for (int32_t id = 0; id < vocab.size(); ++id) {
    // Control, user-defined and unused tokens are never the result of merging: only the special-token matcher, which
    // knows where its text came from, may produce them.
    if (vocab.types[id] != TokenType::normal || written[id].empty()) continue;
    const auto bytes = bytes_of_alphabet(written[id]);
    if (!bytes) continue;
    Symbol& symbol = bpe.symbols_[bpe.symbol_of(*bytes)];
    if (symbol.token < 0) symbol.token = id;
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    bpe.byte_symbols_[byte] = bpe.symbol_of(std::string_view(&c, 1));
  }
  bpe.merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view line = merges[rank];
    const size_t space = line.find(' ', 1);
    if (line.empty() || space == std::string_view::npos || space + 1 == line.size()) {
      return Error{Code::corrupt, "tokenizer.ggml.merges[" + std::to_string(rank) +
                                      "]: expected two parts with a space between, found " +
                                      std::to_string(line.size()) + " bytes without"};
    }
    const auto left = bytes_of_alphabet(line.substr(0, space));
    const auto right = bytes_of_alphabet(line.substr(space + 1));
    Merge merge{-1, -1, -1};
    if (left && right) {
      merge = {bpe.symbol_of(*left), bpe.symbol_of(*right), bpe.symbol_of(*left + *right)};
      Symbol& result = bpe.symbols_[merge.result];
      if (result.left < 0) {
        result.left = merge.left;
        result.right = merge.right;
      }
    }
    bpe.merges_.push_back(merge);
  }
  bpe.index_merges();
  return Result<Bpe>{std::move(bpe)};
}

int32_t Bpe::symbol_of(std::string_view bytes) {
  const int32_t number = texts_.intern(bytes);
  if (number == static_cast<int32_t>(symbols_.size())) symbols_.push_back({-1, -1, -1});
  return number;
}

void Bpe::index_merges() {
  slots_.assign(std::bit_ceil(2 * merges_.size() + 1), -1);
  const size_t mask = slots_.size() - 1;
  for (size_t rank = 0; rank < merges_.size(); ++rank) {
    const Merge& merge = merges_[rank];
    if (merge.left < 0 || rank_of(merge.left, merge.right) >= 0) continue;  // a repeated line keeps its first rank
    size_t slot = hash_pair(merge.left, merge.right) & mask;
    while (slots_[slot] >= 0) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<int32_t>(rank);
  }
}

int32_t Bpe::rank_of(int32_t left, int32_t right) const {
  const size_t mask = slots_.size() - 1;
  for (size_t slot = hash_pair(left, right) & mask; slots_[slot] >= 0; slot = (slot + 1) & mask) {
    const Merge& merge = merges_[slots_[slot]];
    if (merge.left == left && merge.right == right) return slots_[slot];
  }
  return -1;
}

int32_t Bpe::find(std::string_view bytes) const {
  const int32_t symbol = texts_.find(bytes);
  return symbol < 0 ? -1 : symbols_[symbol].token;
}

void Bpe::encode(std::string_view text, std::vector<int32_t>& out) const {
  std::string composed;
  if (pre_.nfc && may_change_under_nfc(text)) {
    composed = to_nfc(text);
    text = composed;
  }
  WordCache cache(text.size());
  const auto encode = [this](std::string_view part, std::vector<int32_t>& ids) { encode_part(part, ids); };
  pre_.split(text, [&](std::string_view part) { cache.append(part, out, encode); });
}

void Bpe::encode_part(std::string_view part, std::vector<int32_t>& out) const {
  if (pre_.ignore_merges) {
    if (const int32_t token = find(part); token >= 0) {
      out.push_back(token);
      return;
    }
  }
  if (part.size() <= kShortPart) {
    merge_short(part, out);
    return;
  }
  for (size_t pos = 0; pos < part.size(); pos += kMaxPart) merge_long(part.substr(pos, kMaxPart), out);
}

void Bpe::merge_short(std::string_view part, std::vector<int32_t>& out) const {
  std::array<int32_t, kShortPart> symbols;
  std::array<int32_t, kShortPart> ranks;  // of the pair that starts here, -1: none
  size_t n = part.size();
  for (size_t i = 0; i < n; ++i) symbols[i] = byte_symbols_[static_cast<uint8_t>(part[i])];
  for (size_t i = 0; i + 1 < n; ++i) ranks[i] = rank_of(symbols[i], symbols[i + 1]);
  while (n > 1) {
    size_t best = n;
    for (size_t i = 0; i + 1 < n; ++i) {
      if (ranks[i] >= 0 && (best == n || ranks[i] < ranks[best])) best = i;
    }
    if (best == n) break;
    symbols[best] = merges_[ranks[best]].result;
    std::copy(symbols.begin() + best + 2, symbols.begin() + n, symbols.begin() + best + 1);
    std::copy(ranks.begin() + best + 1, ranks.begin() + n - 1, ranks.begin() + best);
    --n;
    if (best > 0) ranks[best - 1] = rank_of(symbols[best - 1], symbols[best]);
    if (best + 1 < n) ranks[best] = rank_of(symbols[best], symbols[best + 1]);
  }
  for (size_t i = 0; i < n; ++i) emit(symbols[i], out);
}

// The heap holds rank << 32 | position, so that its least entry is the next merge. Entries are not removed when a
// neighbour changes: one is stale when the symbols at its position are no longer those of its merge.
void Bpe::merge_long(std::string_view part, std::vector<int32_t>& out) const {
  struct Node {
    int32_t symbol;  // -1: merged into the one before
    int32_t prev, next;
  };
  const auto n = static_cast<int32_t>(part.size());
  std::vector<Node> nodes(part.size());
  for (int32_t i = 0; i < n; ++i) {
    nodes[i] = {byte_symbols_[static_cast<uint8_t>(part[i])], i - 1, i + 1 < n ? i + 1 : -1};
  }
  std::vector<uint64_t> first;
  first.reserve(part.size());
  const auto entry = [&](int32_t pos) {
    const int32_t rank = rank_of(nodes[pos].symbol, nodes[nodes[pos].next].symbol);
    return rank < 0 ? UINT64_MAX : static_cast<uint64_t>(rank) << 32 | static_cast<uint32_t>(pos);
  };
  for (int32_t i = 0; i + 1 < n; ++i) {
    if (const uint64_t e = entry(i); e != UINT64_MAX) first.push_back(e);
  }
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> heap(std::greater<>{}, std::move(first));
  while (!heap.empty()) {
    const auto pos = static_cast<int32_t>(heap.top() & UINT32_MAX);
    const Merge& merge = merges_[heap.top() >> 32];
    heap.pop();
    Node& node = nodes[pos];
    if (node.symbol != merge.left || node.next < 0 || nodes[node.next].symbol != merge.right) continue;
    Node& taken = nodes[node.next];
    node.symbol = merge.result;
    taken.symbol = -1;
    node.next = taken.next;
    if (node.next >= 0) {
      nodes[node.next].prev = pos;
      if (const uint64_t e = entry(pos); e != UINT64_MAX) heap.push(e);
    }
    if (node.prev >= 0) {
      if (const uint64_t e = entry(node.prev); e != UINT64_MAX) heap.push(e);
    }
  }
  for (int32_t i = 0; i >= 0; i = nodes[i].next) emit(nodes[i].symbol, out);
}

void Bpe::emit(int32_t symbol, std::vector<int32_t>& out) const {
  if (symbols_[symbol].token >= 0) {
    out.push_back(symbols_[symbol].token);
    return;
  }
  std::vector<int32_t> open{symbol};
  while (!open.empty()) {
    const Symbol& top = symbols_[open.back()];
    open.pop_back();
    if (top.token >= 0) {
      out.push_back(top.token);
    } else if (top.left >= 0) {
      open.push_back(top.right);
      open.push_back(top.left);
    }
  }
}

}  // namespace chimere::tokenizer
