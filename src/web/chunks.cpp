// chunks.cpp  Cutting text where a reader would, and BM25.
#include "web/chunks.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <unordered_map>

#include "base/hash.h"
#include "text/utf8.h"

namespace chimere::web {
namespace {

constexpr size_t kLettersCompared = 8;
constexpr double kSaturation = 1.2, kLengthWeight = 0.75;

// The end of the first sentence of `text`, behind its white space; npos where there is none.
size_t sentence_end(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') return i + 1;
    const bool is_mark = text[i] == '.' || text[i] == '!' || text[i] == '?';
    if (is_mark && i + 1 < text.size() && (text[i + 1] == ' ' || text[i + 1] == '\n')) return i + 2;
    const std::string_view wide = text.substr(i, 3);
    if (wide == "\u3002" || wide == "\uFF01" || wide == "\uFF1F") return i + 3;
  }
  return std::string_view::npos;
}

// A place at most `limit` into a text that is longer: behind a space, or else between characters.
size_t cut_place(std::string_view text, size_t limit) {
  const size_t space = text.substr(0, limit).rfind(' ');
  if (space != std::string_view::npos && space >= limit / 2) return space + 1;
  size_t place = limit;
  while (place > 0 && is_continuation(text[place])) --place;
  return std::max<size_t>(place, 1);
}

// The text as pieces of at most `limit` bytes that are not torn: paragraphs, else sentences, else words.
std::vector<std::string_view> whole_pieces(std::string_view text, size_t limit) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    const size_t end = text.find("\n\n");
    std::string_view paragraph = text.substr(0, end == std::string_view::npos ? text.size() : end + 2);
    text.remove_prefix(paragraph.size());
    if (paragraph.size() <= limit) {
      pieces.push_back(paragraph);
      continue;
    }
    while (!paragraph.empty()) {
      size_t n = std::min(sentence_end(paragraph), paragraph.size());
      if (n > limit) n = cut_place(paragraph, limit);
      pieces.push_back(paragraph.substr(0, n));
      paragraph.remove_prefix(n);
    }
  }
  return pieces;
}

bool is_heading(std::string_view piece) { return piece.substr(0, 1) == "#" && piece.find('\n') + 2 >= piece.size(); }

std::string stripped(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  while (!text.empty() && text.front() == '\n') text.remove_prefix(1);
  return std::string(text);
}

// The last sentences of a chunk, at most `limit` bytes; none where even the last is longer.
std::string last_sentences(std::string_view chunk, size_t limit) {
  size_t begin = chunk.size() > limit ? chunk.size() - limit : 0;
  while (begin < chunk.size() && is_continuation(chunk[begin])) ++begin;
  if (begin == 0) return std::string(chunk);
  const size_t end = sentence_end(chunk.substr(begin));
  return end == std::string_view::npos ? "" : std::string(chunk.substr(begin + end));
}

bool is_word_char(char32_t code) {
  if (code < 0x80) return std::isalnum(static_cast<unsigned char>(code)) != 0;
  return code != kInvalidChar && code >= 0xAA && (code < 0x2000 || code > 0x206F) && (code < 0x3000 || code > 0x303F);
}
bool is_word_alone(char32_t code) { return code >= 0x2E80 && code <= 0x3FFFF && !(code >= 0xAC00 && code <= 0xD7AF); }

std::vector<uint64_t> terms_of(std::string_view text) {
  std::vector<uint64_t> terms;
  std::string word;
  size_t letters = 0;
  const auto finish = [&] {
    if (!word.empty()) terms.push_back(hash64(word));
    word.clear();
    letters = 0;
  };
  for (size_t pos = 0; pos < text.size();) {
    const CodePoint c = decode_at(text, pos);
    const std::string_view bytes = text.substr(pos, c.n_bytes);
    pos += c.n_bytes;
    if (!is_word_char(c.value)) {
      finish();
    } else if (is_word_alone(c.value)) {
      finish();
      word = bytes;
      finish();
    } else if (letters++ < kLettersCompared) {
      if (c.value < 0x80) {
        word += static_cast<char>(std::tolower(static_cast<unsigned char>(bytes[0])));
      } else {
        word += bytes;
      }
    }
  }
  finish();
  return terms;
}

}  // namespace

std::vector<std::string> chunk_text(std::string_view text, const ChunkSizes& sizes) {
  std::vector<std::string> chunks;
  std::string chunk;
  size_t own_bytes = 0;  // of the chunk, without what it shares with the one before
  std::string heading;   // met, but not written yet
  const auto finish = [&] {
    if (own_bytes > 0) chunks.push_back(stripped(chunk));
    const std::string shared = chunks.empty() ? "" : last_sentences(chunks.back(), sizes.overlap);
    chunk = shared.empty() ? "" : shared + "\n";
    own_bytes = 0;
  };
  for (const std::string_view piece : whole_pieces(text, sizes.bytes)) {
    if (chunks.size() >= sizes.max_chunks) break;
    if (stripped(piece).empty()) continue;
    if (is_heading(piece)) {
      heading += piece;
      if (heading.size() < sizes.bytes / 4) continue;
    }
    const bool is_full = own_bytes > 0 && chunk.size() + heading.size() + piece.size() > sizes.bytes;
    // A section begins a chunk of its own once the last is half full.
    if (is_full || (!heading.empty() && own_bytes > sizes.bytes / 2)) finish();
    if (!heading.empty() && own_bytes == 0) chunk.clear();
    if (!is_heading(piece)) heading += piece;
    chunk += heading;
    own_bytes += heading.size();
    heading.clear();
  }
  if (!heading.empty()) {
    chunk += heading;
    own_bytes += heading.size();
  }
  if (own_bytes > 0 && chunks.size() < sizes.max_chunks) chunks.push_back(stripped(chunk));
  return chunks;
}

std::vector<double> bm25_scores(std::string_view question, const std::vector<std::string_view>& texts) {
  std::vector<uint64_t> asked = terms_of(question);
  std::sort(asked.begin(), asked.end());
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  std::unordered_map<uint64_t, size_t> place;
  for (size_t i = 0; i < asked.size(); ++i) place[asked[i]] = i;

  std::vector<std::vector<int>> counts(texts.size(), std::vector<int>(asked.size()));  // [texts, asked]
  std::vector<double> lengths(texts.size());
  std::vector<int> n_with(asked.size());
  double total = 0;
  for (size_t t = 0; t < texts.size(); ++t) {
    const std::vector<uint64_t> terms = terms_of(texts[t]);
    lengths[t] = static_cast<double>(terms.size());
    total += lengths[t];
    for (const uint64_t term : terms) {
      if (const auto at = place.find(term); at != place.end() && counts[t][at->second]++ == 0) ++n_with[at->second];
    }
  }
  const auto n = static_cast<double>(texts.size());
  const double mean = std::max(1.0, total / std::max(1.0, n));
  std::vector<double> scores(texts.size());
  for (size_t t = 0; t < texts.size(); ++t) {
    for (size_t i = 0; i < asked.size(); ++i) {
      if (counts[t][i] == 0) continue;
      const double weight = std::log(1 + (n - n_with[i] + 0.5) / (n_with[i] + 0.5));
      const double norm = kSaturation * (1 - kLengthWeight + kLengthWeight * lengths[t] / mean);
      scores[t] += weight * counts[t][i] * (kSaturation + 1) / (counts[t][i] + norm);
    }
  }
  return scores;
}

}  // namespace chimere::web
