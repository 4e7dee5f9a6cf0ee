// unigram.cpp  The best path over a text, character by character; pieces are found by narrowing a sorted list.
#include "tokenizer/unigram.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "tokenizer/unicode.h"

namespace chimere::tokenizer {
namespace {

constexpr double kUnknownPenalty = 10;  // below the worst piece

// Of every text up to some place, the best last step.
struct Step {
  double score = -std::numeric_limits<double>::infinity();
  size_t from = 0;
  int32_t token = -1;
};

Result<CharsMap> read_charsmap(const gguf::Metadata& metadata) {
  constexpr std::string_view kKey = "tokenizer.ggml.precompiled_charsmap";
  std::string blob;
  if (metadata.contains(kKey)) {
    TRY_ASSIGN(const std::vector<int64_t> bytes, metadata.get_ints(kKey, -128, 255));
    for (const int64_t byte : bytes) blob += static_cast<char>(byte);
  }
  return CharsMap::parse(blob);
}

}  // namespace

Result<Unigram> Unigram::from_metadata(const gguf::Metadata& metadata, const Vocab& vocab) {
  TRY_ASSIGN(const std::vector<float> scores, metadata.get_floats("tokenizer.ggml.scores"));
  if (scores.size() < static_cast<size_t>(vocab.size())) {
    return Error{Code::corrupt, "tokenizer.ggml.scores: expected at least " + std::to_string(vocab.size()) +
                                    " entries, one for each token, found " + std::to_string(scores.size())};
  }
  if (vocab.ids.unk < 0) {
    return Error{Code::corrupt, "tokenizer.ggml.unknown_token_id: expected a token for what no piece covers"};
  }
  Unigram model;
  TRY_ASSIGN(model.charsmap_, read_charsmap(metadata));
  TRY_ASSIGN(model.merge_spaces_, metadata.get_bool_or("tokenizer.ggml.remove_extra_whitespaces", false));
  model.add_space_prefix_ = vocab.add_space_prefix;
  model.unk_ = vocab.ids.unk;
  double worst = 0;
  for (int32_t id = 0; id < vocab.size(); ++id) {
    const std::string_view text = vocab.text(id);
    if (vocab.types[id] != TokenType::normal || text.empty()) continue;
    worst = std::min(worst, double{scores[id]});
    if (model.texts_.intern(text) == static_cast<int32_t>(model.pieces_.size())) {
      model.pieces_.push_back({id, scores[id]});
    }
  }
  model.unknown_score_ = worst - kUnknownPenalty;

  model.order_.resize(model.pieces_.size());
  std::iota(model.order_.begin(), model.order_.end(), 0);
  std::sort(model.order_.begin(), model.order_.end(),
            [&](int32_t a, int32_t b) { return model.texts_[a] < model.texts_[b]; });
  for (uint32_t i = 0; i < model.order_.size(); ++i) {
    Range& range = model.by_first_byte_[static_cast<uint8_t>(model.texts_[model.order_[i]].front())];
    if (range.end == 0) range.begin = i;
    range.end = i + 1;
  }
  return Result<Unigram>{std::move(model)};
}

int32_t Unigram::find(std::string_view bytes) const {
  const int32_t number = texts_.find(bytes);
  return number < 0 ? -1 : pieces_[number].token;
}

template <class Take>
void Unigram::each_prefix(std::string_view text, Take take) const {
  Range range = by_first_byte_[static_cast<uint8_t>(text.front())];
  for (size_t n = 1; range.begin < range.end; ++n) {
    // All of the range begin with the first n bytes; the one that ends there sorts first.
    if (texts_[order_[range.begin]].size() == n) {
      take(n, pieces_[order_[range.begin]]);
      ++range.begin;
    }
    if (n == text.size()) return;
    const auto byte_of = [&](int32_t number) { return static_cast<uint8_t>(texts_[number][n]); };
    const auto byte = static_cast<uint8_t>(text[n]);
    const auto begin = order_.begin() + range.begin, end = order_.begin() + range.end;
    const auto first = std::lower_bound(begin, end, byte, [&](int32_t a, uint8_t b) { return byte_of(a) < b; });
    const auto last = std::upper_bound(first, end, byte, [&](uint8_t b, int32_t a) { return b < byte_of(a); });
    range = {static_cast<uint32_t>(first - order_.begin()), static_cast<uint32_t>(last - order_.begin())};
  }
}

std::string Unigram::normalised(std::string_view text) const {
  std::string mapped;
  for (size_t pos = 0; pos < text.size();) pos += charsmap_.append(text, pos, mapped);
  std::string out;
  bool pending_space = add_space_prefix_, has_text = false;
  for (size_t pos = 0; pos < mapped.size();) {
    const bool marked = std::string_view(mapped).substr(pos, kSpaceMark.size()) == kSpaceMark;
    if (marked || mapped[pos] == ' ') {
      pos += marked ? kSpaceMark.size() : 1;
      if (!merge_spaces_) {
        if (std::exchange(pending_space, false)) out += ' ';
        out += ' ';
      } else if (has_text) {
        pending_space = true;
      }
      continue;
    }
    if (std::exchange(pending_space, false)) out += ' ';
    has_text = true;
    out += mapped[pos++];
  }
  return out;
}

void Unigram::encode(std::string_view text, std::vector<int32_t>& out) const {
  const std::string normal = normalised(text);
  if (normal.empty()) return;
  std::vector<Step> best(normal.size() + 1);
  best[0].score = 0;
  const auto offer = [&](size_t from, size_t to, int32_t token, double score) {
    if (best[from].score + score > best[to].score) best[to] = {best[from].score + score, from, token};
  };
  for (size_t pos = 0; pos < normal.size();) {
    const size_t len = char_at(normal, pos).len;
    bool is_known = false;
    each_prefix(std::string_view(normal).substr(pos), [&](size_t n, const Piece& piece) {
      is_known = is_known || n == len;
      offer(pos, pos + n, piece.token, piece.score);
    });
    if (!is_known) offer(pos, pos + len, unk_, unknown_score_);
    pos += len;
  }
  const auto first = static_cast<std::ptrdiff_t>(out.size());
  for (size_t at = normal.size(); at > 0; at = best[at].from) {
    // Neighbours that no piece covers are one unknown token.
    const bool repeats = best[at].token == unk_ && out.size() > static_cast<size_t>(first) && out.back() == unk_;
    if (!repeats) out.push_back(best[at].token);
  }
  std::reverse(out.begin() + first, out.end());
}

}  // namespace chimere::tokenizer
