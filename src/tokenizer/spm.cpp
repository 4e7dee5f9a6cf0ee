// spm.cpp  Merging by score with a heap and lazy invalidation.
#include "tokenizer/spm.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <string>

#include "tokenizer/unicode.h"
#include "tokenizer/word_cache.h"

namespace chimere::tokenizer {
namespace {

constexpr size_t kMaxStretch = size_t{1} << 30;  // positions are 32 bits wide

struct Candidate {
  float score;
  int32_t left, right;
  uint32_t bytes;  // of both together; another number means that one of them has changed since
};
struct Worse {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.score < b.score || (a.score == b.score && a.left > b.left);
  }
};

// Finite numbers; some converters write them as integers.
Result<std::vector<float>> read_scores(const gguf::Metadata& metadata) {
  constexpr std::string_view kKey = "tokenizer.ggml.scores";
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
  if (auto integers = metadata.get_ints(kKey, -kLimit, kLimit)) {
    return std::vector<float>(integers->begin(), integers->end());
  }
  return metadata.get_floats(kKey);
}

}  // namespace

Result<Spm> Spm::from_metadata(const gguf::Metadata& metadata, const Vocab& vocab) {
  TRY_ASSIGN(const std::vector<float> scores, read_scores(metadata));
  if (scores.size() < static_cast<size_t>(vocab.size())) {
    return Error{Code::corrupt, "tokenizer.ggml.scores: expected at least " + std::to_string(vocab.size()) +
                                    " entries, one for each token, found " + std::to_string(scores.size())};
  }
  Spm spm;
  spm.add_space_prefix_ = vocab.add_space_prefix;
  spm.unk_ = vocab.ids.unk;
  spm.byte_tokens_.fill(-1);
  for (int32_t id = 0; id < vocab.size(); ++id) {
    const std::string_view text = vocab.text(id);
    if (vocab.types[id] == TokenType::byte) {
      int32_t& token = spm.byte_tokens_[static_cast<uint8_t>(text[0])];
      if (token < 0) token = id;
    }
    if (vocab.types[id] != TokenType::normal || text.empty()) continue;
    spm.longest_ = std::max(spm.longest_, text.size());
    spm.words_apart_ = spm.words_apart_ && text.find(' ', text.find_first_not_of(' ')) == std::string_view::npos;
    if (spm.texts_.intern(text) == static_cast<int32_t>(spm.pieces_.size())) spm.pieces_.push_back({id, scores[id]});
  }
  return Result<Spm>{std::move(spm)};
}

int32_t Spm::find(std::string_view bytes) const {
  const int32_t number = texts_.find(bytes);
  return number < 0 ? -1 : pieces_[number].token;
}

void Spm::encode(std::string_view text, std::vector<int32_t>& out) const {
  if (text.empty()) return;
  std::string spaced;  // U+2581 in the text means a space, as in the vocabulary
  spaced.reserve(text.size() + 1);
  if (add_space_prefix_) spaced += ' ';
  for (size_t pos = 0; pos < text.size();) {
    if (text.substr(pos, kSpaceMark.size()) == kSpaceMark) {
      spaced += ' ';
      pos += kSpaceMark.size();
    } else {
      spaced += text[pos++];
    }
  }
  // Where no piece can reach across the border in front of a space, words are merged one by one, with the same result.
  const std::string_view whole = spaced;
  WordCache cache(whole.size());
  const auto encode = [this](std::string_view word, std::vector<int32_t>& ids) { merge(word, ids); };
  for (size_t from = 0; from < whole.size();) {
    size_t end = whole.size();
    if (words_apart_) end = std::min(end, whole.find(' ', whole.find_first_not_of(' ', from)));
    end = std::min(end, from + kMaxStretch);
    cache.append(whole.substr(from, end - from), out, encode);
    from = end;
  }
}

void Spm::merge(std::string_view text, std::vector<int32_t>& out) const {
  struct Node {
    uint32_t from, bytes;  // bytes 0: merged into the one before
    int32_t prev, next;
  };
  std::vector<Node> nodes;
  nodes.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const size_t len = char_at(text, pos).len;
    const auto i = static_cast<int32_t>(nodes.size());
    nodes.push_back({static_cast<uint32_t>(pos), static_cast<uint32_t>(len), i - 1, i + 1});
    pos += len;
  }
  nodes.back().next = -1;

  std::priority_queue<Candidate, std::vector<Candidate>, Worse> heap;
  const auto offer = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0) return;
    const uint32_t bytes = nodes[left].bytes + nodes[right].bytes;
    if (bytes > longest_) return;
    const int32_t number = texts_.find(text.substr(nodes[left].from, bytes));
    if (number >= 0) heap.push({pieces_[number].score, left, right, bytes});
  };
  for (size_t i = 1; i < nodes.size(); ++i) offer(static_cast<int32_t>(i) - 1, static_cast<int32_t>(i));
  while (!heap.empty()) {
    const Candidate best = heap.top();
    heap.pop();
    Node& left = nodes[best.left];
    Node& right = nodes[best.right];
    if (left.bytes == 0 || right.bytes == 0 || left.bytes + right.bytes != best.bytes) continue;
    left.bytes = best.bytes;
    right.bytes = 0;
    left.next = right.next;
    if (right.next >= 0) nodes[right.next].prev = best.left;
    offer(left.prev, best.left);
    offer(best.left, left.next);
  }
  for (int32_t i = 0; i >= 0; i = nodes[i].next) emit(text.substr(nodes[i].from, nodes[i].bytes), out);
}

void Spm::emit(std::string_view piece, std::vector<int32_t>& out) const {
  if (const int32_t token = find(piece); token >= 0) {
    out.push_back(token);
    return;
  }
  // What no piece covers is spelt in bytes; a vocabulary without byte tokens has only "unknown".
  for (const char c : piece) {
    const int32_t token = byte_tokens_[static_cast<uint8_t>(c)];
    if (token >= 0) {
      out.push_back(token);
    } else if (unk_ >= 0) {
      out.push_back(unk_);
      return;
    }
  }
}

}  // namespace chimere::tokenizer
