// pretokenizer.h  Splitting text into the parts that byte-level BPE merges within.
//
// Each published tokenizer declares a list of regular expressions: the first is applied to the text, the second to
// each part of that, and so on; every match is a part and so is every gap between matches. Here each expression is a
// hand-written scanner, which gives the exact Unicode classes and a running time linear in the text.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/unicode.h"

namespace chimere::tokenizer {

// End of the match that starts at `pos`, or `pos` when there is none. Matches are never empty.
// REQUIRES: pos < text.size().
using Scanner = size_t (*)(std::string_view text, size_t pos);

// What a `tokenizer.ggml.pre` name stands for.
struct PreTokenizer {
  std::vector<Scanner> stages;
  bool ignore_merges = false;  // a part that is a token as a whole is that token, whatever the merges say
  bool add_bos = false;        // when the file does not say
  bool nfc = false;            // text is normalised first

  // Nothing for an unknown name.
  static std::optional<PreTokenizer> named(std::string_view pre);

  // Calls emit(std::string_view part) for each part, in order; the parts add up to `text`.
  template <class Emit>
  void split(std::string_view text, Emit&& emit) const {
    split_from(0, text, emit);
  }

 private:
  template <class Emit>
  void split_from(size_t stage, std::string_view text, Emit& emit) const {
    if (stage == stages.size()) {
      emit(text);
      return;
    }
    const Scanner scan = stages[stage];
    size_t gap = 0;  // start of what no match has taken yet
    for (size_t pos = 0; pos < text.size();) {
      const size_t end = scan(text, pos);
      if (end == pos) {
        pos += char_at(text, pos).len;
        continue;
      }
      if (gap < pos) split_from(stage + 1, text.substr(gap, pos - gap), emit);
      split_from(stage + 1, text.substr(pos, end - pos), emit);
      gap = pos = end;
    }
    if (gap < text.size()) split_from(stage + 1, text.substr(gap), emit);
  }
};

}  // namespace chimere::tokenizer
