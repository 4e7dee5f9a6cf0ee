// plain_text.cpp  Lines, and paragraphs between empty ones.
#include "documents/readers.h"

namespace chimere::documents {

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  uint32_t number = 1;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back({text.substr(0, end), number++});
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return lines;
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r\f\v") == std::string_view::npos; }

void add_paragraphs(std::string_view text, const std::string& heading, Place first, std::vector<Block>& blocks) {
  Block block;
  const auto flush = [&] {
    if (!block.text.empty()) blocks.push_back(std::move(block));
    block = {};
  };
  for (const Line& line : lines_of(text)) {
    if (is_blank(line.text)) {
      flush();
      continue;
    }
    if (block.text.empty()) {
      block.heading = heading;
      block.place = {first.line > 0 ? first.line + line.number - 1 : 0, first.page};
    } else {
      block.text += '\n';
    }
    block.text += line.text;
  }
  flush();
}

Document read_plain_text(std::string_view text) {
  Document document;
  add_paragraphs(text, "", {1, 0}, document.blocks);
  return document;
}

}  // namespace chimere::documents
