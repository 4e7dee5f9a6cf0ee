// source_code.cpp  Source code cut at its definitions, by how it is laid out: what people begin at the left border after
// an empty line, or behind a closing bracket there, is something new in nearly every language.
#include <algorithm>

#include "documents/readers.h"
#include "text/utf8.h"

namespace chimere::documents {
namespace {

constexpr size_t kMaxNameBytes = 160;

bool is_comment(std::string_view line) {
  for (const std::string_view mark : {"//", "#", "/*", "*", "--", ";;", "%", "\"\"\""}) {
    if (line.starts_with(mark)) return true;
  }
  return false;
}

// The line that names a definition: the first that is neither a comment nor a mark such as @Override or [[nodiscard]].
std::string_view naming_line(std::string_view unit) {
  for (const Line& line : lines_of(unit)) {
    const size_t first = line.text.find_first_not_of(" \t");
    if (first == std::string_view::npos) continue;
    const std::string_view text = line.text.substr(first);
    if (is_comment(text) || text[0] == '@' || text.starts_with("[[") || text.starts_with("#[")) continue;
    return text.substr(0, utf8_floor(text, kMaxNameBytes));
  }
  return {};
}

bool begins_left(std::string_view line) {
  return !line.empty() && line[0] != ' ' && line[0] != '\t' &&
         std::string_view("})]").find(line[0]) == std::string_view::npos;
}

bool closes_left(std::string_view line) {
  return !line.empty() && (line[0] == '}' || line[0] == ')' || line.starts_with("end"));
}

}  // namespace

Document read_source_code(std::string_view text) {
  Document document;
  Block block;
  std::string_view before;  // the last line that was not blank
  size_t n_blank = 0;       // lines since then
  const auto flush = [&] {
    block.heading = std::string(naming_line(block.text));
    if (!block.text.empty()) document.blocks.push_back(std::move(block));
    block = {};
  };
  for (const Line& line : lines_of(text)) {
    if (is_blank(line.text)) {
      ++n_blank;
      continue;
    }
    if (begins_left(line.text) && (n_blank > 0 || closes_left(before))) flush();
    if (block.text.empty()) {
      block.place.line = line.number;
      block.cut = Cut::lines;
    } else {
      block.text.append(n_blank + 1, '\n');
    }
    block.text += line.text;
    before = line.text;
    n_blank = 0;
  }
  flush();
  return document;
}

}  // namespace chimere::documents
