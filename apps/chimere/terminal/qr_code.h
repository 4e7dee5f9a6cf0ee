// qr_code.h  A text as a QR code, drawn with the characters of a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace chimere::apps {

// Dark and light modules, without a border.
struct QrCode {
  int size = 0;            // modules of a side: 21 to 57
  std::vector<bool> dark;  // [size, size]

  bool at(int row, int column) const {
    return row >= 0 && row < size && column >= 0 && column < size && dark[static_cast<size_t>(row * size + column)];
  }
};

// The smallest that holds the text, up to version 10: 271 bytes.
Result<QrCode> qr_code(std::string_view text);

// Two modules above one another are one character; around them is the border that readers need. With colours it is
// dark on light whatever the terminal's are; without, it relies on light letters on a dark ground.
std::string drawn(const QrCode& code, bool with_colours);

}  // namespace chimere::apps
