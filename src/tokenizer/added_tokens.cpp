// added_tokens.cpp  A byte trie with sibling lists; only the root, asked at every byte of text, is a table.
#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <string>

#include "tokenizer/unicode.h"

namespace chimere::tokenizer {
namespace {

// The search walks this far from every byte of a text, so a file must not make it long. Published ones stay below 100.
constexpr size_t kMaxBytes = 1024;

bool is_blank(std::string_view text) {
  for (size_t pos = 0; pos < text.size();) {
    const Char c = char_at(text, pos);
    if ((c.classes & kSpace) == 0) return false;
    pos += c.len;
  }
  return true;
}

}  // namespace

Result<AddedTokens> AddedTokens::from_vocab(const Vocab& vocab) {
  AddedTokens added;
  added.roots_.fill(-1);
  for (int32_t id = 0; id < vocab.size(); ++id) {
    const TokenType type = vocab.types[id];
    if (type != TokenType::control && type != TokenType::unknown && type != TokenType::user_defined) continue;
    const std::string_view text = vocab.text(id);
    if (text.empty()) continue;
    if (text.size() > kMaxBytes) {
      return Error{Code::corrupt, "tokenizer.ggml.tokens[" + std::to_string(id) +
                                      "]: expected a special token of at most " + std::to_string(kMaxBytes) +
                                      " bytes, found " + std::to_string(text.size())};
    }
    added.add(text, id,
              type != TokenType::user_defined ? Trust::template_ : (is_blank(text) ? Trust::any : Trust::text));
  }
  return Result<AddedTokens>{std::move(added)};
}

int32_t AddedTokens::child_of(int32_t node, char byte) const {
  int32_t child = nodes_[node].child;
  while (child >= 0 && nodes_[child].byte != byte) child = nodes_[child].sibling;
  return child;
}

void AddedTokens::add(std::string_view text, int32_t id, Trust trust) {
  int32_t node = -1;
  for (const char byte : text) {
    const int32_t next = node < 0 ? roots_[static_cast<uint8_t>(byte)] : child_of(node, byte);
    if (next >= 0) {
      node = next;
      continue;
    }
    const auto fresh = static_cast<int32_t>(nodes_.size());
    nodes_.push_back({.byte = byte});
    if (node < 0) {
      roots_[static_cast<uint8_t>(byte)] = fresh;
    } else {
      nodes_[fresh].sibling = nodes_[node].child;
      nodes_[node].child = fresh;
    }
    node = fresh;
  }
  if (nodes_[node].id < 0) {
    nodes_[node].id = id;
    nodes_[node].trust = trust;
  }
}

int32_t AddedTokens::find(std::string_view text) const {
  if (text.empty()) return -1;
  const Match match = longest_at(text, 0, [&](Trust, size_t len) { return len == text.size(); });
  return match.id;
}

}  // namespace chimere::tokenizer
