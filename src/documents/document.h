// document.h  A file as text: blocks in their order, each with the place it came from, whatever the file was.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chimere::documents {

enum class Kind { text, markdown, code, csv, html, pdf };

// "text", "markdown", "code", "csv", "html", "pdf"
const char* kind_name(Kind kind);

// Where something stands. 0: not known.
struct Place {
  uint32_t line = 0;  // the first is 1
  uint32_t page = 0;  // of a PDF
};

// "page 3", "line 12", or nothing.
std::string describe(const Place& place);

// How a block that is too long for one chunk may be cut.
enum class Cut { sentences, lines };

// A paragraph, a function, some rows of a table.
struct Block {
  std::string text;
  std::string heading;  // the headings above it, joined by " > "; of code its first line
  Place place;
  Cut cut = Cut::sentences;
  bool stands_alone = false;  // shares no chunk with its neighbours
};

struct Document {
  Kind kind = Kind::text;
  std::string title;  // empty: it has none of its own
  std::vector<Block> blocks;
};

}  // namespace chimere::documents
