#include "grammar/vocabulary.h"

#include <algorithm>
#include <utility>

#include "grammar/expression.h"
#include "grammar/plain_text.h"

namespace chimere::grammar {
namespace {

// A token of 64 KiB would be a strange one; a tree counts its depth in 16 bits.
constexpr size_t kMaxTokenBytes = UINT16_MAX;

using Entry = std::pair<std::string, std::int32_t>;

TokenTree tree_of(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end());
  TokenTree tree;
  std::vector<std::uint32_t> path{0};  // nodes from the root to the last one
  const auto add_node = [&](unsigned char byte) {
    tree.byte.push_back(byte);
    tree.depth.push_back(static_cast<std::uint16_t>(path.size() - 1));
    tree.end.push_back(0);
    tree.first_id.push_back(static_cast<std::uint32_t>(tree.ids.size()));
  };
  const auto leave = [&](size_t depth) {
    for (; path.size() > depth + 1; path.pop_back()) tree.end[path.back()] = tree.size();
  };
  add_node(0);
  std::string_view last;
  for (const auto& [bytes, id] : entries) {
    const auto same =
        static_cast<size_t>(std::mismatch(last.begin(), last.end(), bytes.begin(), bytes.end()).second - bytes.begin());
    leave(same);
    for (size_t i = same; i < bytes.size(); ++i) {
      path.push_back(tree.size());
      add_node(static_cast<unsigned char>(bytes[i]));
    }
    tree.ids.push_back(id);
    last = bytes;
  }
  leave(0);
  tree.end[0] = tree.size();
  tree.first_id.push_back(static_cast<std::uint32_t>(tree.ids.size()));
  return tree;
}

}  // namespace

Vocabulary::Vocabulary(const Tokenizer& tokenizer, std::int32_t n_rows)
    : tokenizer_(tokenizer), n_words_((static_cast<size_t>(n_rows) + 63) / 64) {
  const std::int32_t n = std::min(tokenizer.n_vocab(), n_rows);
  is_left_out_.assign(static_cast<size_t>(n), false);
  const auto leave_out = [&](const std::vector<std::int32_t>& ids) {
    for (const std::int32_t id : ids) {
      if (id >= 0 && id < n) is_left_out_[static_cast<size_t>(id)] = true;
    }
  };
  leave_out(tokenizer.unused_ids());
  leave_out(tokenizer.suppress_ids());
  leave_out(tokenizer.eog_ids());
  for (const std::int32_t id : tokenizer.eog_ids()) {
    if (id >= 0 && id < n_rows) end_ids_.push_back(id);
  }

  plain_.assign(kMaxPlainChars + 1, std::vector<std::uint64_t>(n_words_));
  std::vector<Entry> all, not_plain;
  for (std::int32_t id = 0; id < n; ++id) {
    const Reading read = reading(id);
    longest_bytes_ = std::max(longest_bytes_, read.text.size());
    if (!read.code.empty()) {
      all.emplace_back(read.code, id);
      not_plain.emplace_back(read.code, id);
    }
    if (read.text.empty()) continue;
    all.emplace_back(read.text, id);
    const std::optional<int> n_chars = count_plain(read.text);
    if (!n_chars || *n_chars > kMaxPlainChars) {
      not_plain.emplace_back(read.text, id);
      continue;
    }
    for (int k = *n_chars; k <= kMaxPlainChars; ++k) {
      plain_[static_cast<size_t>(k)][static_cast<size_t>(id) / 64] |= std::uint64_t{1} << (id % 64);
    }
  }
  all_ = tree_of(std::move(all));
  not_plain_ = tree_of(std::move(not_plain));
}

Vocabulary::Reading Vocabulary::reading(std::int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= is_left_out_.size() || is_left_out_[static_cast<size_t>(id)]) return {};
  const std::string_view text = tokenizer_.token_text(id);
  const TokenType type = tokenizer_.token_type(id);
  if (type == TokenType::control) return {{}, token_code(id)};
  if (type == TokenType::unknown || text.size() > kMaxTokenBytes) return {};
  // No UTF-8 has this byte, and codes begin with it.
  const std::string_view readable = text.find('\xFF') == std::string_view::npos ? text : std::string_view();
  return {readable, type == TokenType::user_defined ? token_code(id) : std::string()};
}

std::span<const std::uint64_t> Vocabulary::plain(std::uint32_t n_chars) const {
  return plain_[std::min<std::uint32_t>(n_chars, kMaxPlainChars)];
}

std::vector<std::int32_t> Vocabulary::longest_tokens(std::string_view text) const {
  std::vector<std::int32_t> ids;
  for (size_t pos = 0; pos < text.size();) {
    std::int32_t best = -1;
    size_t best_end = pos;
    std::uint32_t node = 0;
    for (size_t i = pos; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      std::uint32_t child = node + 1;
      while (child < all_.end[node] && all_.byte[child] != byte) child = all_.end[child];
      if (child >= all_.end[node]) break;
      node = child;
      if (all_.ids_at(node).empty()) continue;
      best = all_.ids_at(node).front();
      best_end = i + 1;
    }
    if (best < 0) return {};
    ids.push_back(best);
    pos = best_end;
  }
  return ids;
}

bool Vocabulary::is_end(std::int32_t id) const {
  return std::find(end_ids_.begin(), end_ids_.end(), id) != end_ids_.end();
}

}  // namespace chimere::grammar
