// folded_text.h  A text as rules compare it: small letters without accents, every run of spaces one space, and a space at
// both ends, so that a pattern finds the borders of words there, too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chimere::odo {

// What of a question decides where it goes: of a longer one its beginning and its end, where people say what they want.
inline constexpr size_t kMaxFoldedBytes = 4096;

class FoldedText {
 public:
  explicit FoldedText(std::string_view text);

  std::string_view text() const { return text_; }
  // Runs of letters and digits, with the signs of "c++" and "c#" behind them.
  std::vector<std::string_view> words() const;

 private:
  std::string text_;
};

}  // namespace chimere::odo
