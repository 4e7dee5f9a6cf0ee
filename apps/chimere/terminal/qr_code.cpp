#include "terminal/qr_code.h"

#include <qrencode.h>

#include <memory>

namespace chimere::apps {

Result<QrCode> qr_code(std::string_view text) {
  constexpr int kMaxVersion = 10;  // 57 modules and their border: more than 65 columns are no picture in a terminal
  if (text.empty() || text.find('\0') != std::string_view::npos) {
    return Error{Code::invalid_argument, "QR code: expected a text without zero bytes"};
  }
  // It is read from a clean screen: of the four levels of correction the lowest makes the largest modules.
  const std::unique_ptr<QRcode, decltype(&QRcode_free)> made(
      QRcode_encodeString8bit(std::string(text).c_str(), 0, QR_ECLEVEL_L), &QRcode_free);
  if (!made || made->version > kMaxVersion) {
    return Error{Code::invalid_argument, "QR code: expected at most 271 bytes, found " + std::to_string(text.size())};
  }
  QrCode code;
  code.size = made->width;
  const size_t n = static_cast<size_t>(made->width) * static_cast<size_t>(made->width);
  for (size_t i = 0; i < n; ++i) code.dark.push_back((made->data[i] & 1) != 0);
  return Result<QrCode>{std::move(code)};
}

std::string drawn(const QrCode& code, bool with_colours) {
  constexpr int kBorder = 4;                                                      // as the standard demands
  constexpr const char* kBlocks[2][2] = {{"\u2588", "\u2580"}, {"\u2584", " "}};  // [dark above][dark below]
  std::string text;
  for (int row = -kBorder; row < code.size + kBorder; row += 2) {
    if (with_colours) text += "\033[97;40m";
    for (int column = -kBorder; column < code.size + kBorder; ++column) {
      text += kBlocks[code.at(row, column) ? 1 : 0][code.at(row + 1, column) ? 1 : 0];
    }
    if (with_colours) text += "\033[0m";
    text += "\n";
  }
  return text;
}

}  // namespace chimere::apps
