// readers.h  Text of each kind as blocks. All of these take valid UTF-8 with '\n' at the ends of lines, and take time that
// grows with its length alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "documents/document.h"

namespace chimere::documents {

// The lines of a text with their numbers, the first is 1; without their ends.
struct Line {
  std::string_view text;
  uint32_t number = 0;
};
std::vector<Line> lines_of(std::string_view text);
bool is_blank(std::string_view line);

// Paragraphs between empty lines.
void add_paragraphs(std::string_view text, const std::string& heading, Place first, std::vector<Block>& blocks);
Document read_plain_text(std::string_view text);
// Headings in both forms; what stands between fences is code and has none.
Document read_markdown(std::string_view text);
// Definitions: what begins at the left border, with the comment above it, up to the next such line. No language is parsed.
Document read_source_code(std::string_view text);

inline constexpr size_t kMaxCsvColumns = 1000;
inline constexpr size_t kMaxCsvCellBytes = 64 << 10;
// Rows as "name: value" of each column, so that a chunk of them can be read without the head of the table. The
// separator is the one of , ; tab | that the first line has most of. Invalid where a quote is never closed.
Result<Document> read_csv(std::string_view text);

}  // namespace chimere::documents
