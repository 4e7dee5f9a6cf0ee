#include "documents/chunks.h"

#include <algorithm>
#include <string_view>

#include "base/check.h"
#include "documents/readers.h"
#include "documents/sentences.h"
#include "text/utf8.h"

namespace chimere::documents {
namespace {

// Parts of a text in their order, none longer than `most`: words where there are some, characters where not.
std::vector<std::string_view> short_enough(std::string_view part, size_t most) {
  std::vector<std::string_view> pieces;
  while (part.size() > most) {
    size_t end = part.substr(0, most).rfind(' ');
    if (end == std::string_view::npos || end == 0) end = utf8_floor(part, most);
    pieces.push_back(part.substr(0, end));
    part.remove_prefix(end);
  }
  if (!part.empty()) pieces.push_back(part);
  return pieces;
}

std::vector<std::string_view> units_of(const Block& block, size_t most) {
  std::vector<std::string_view> units;
  const auto add = [&](std::string_view unit) {
    for (const std::string_view piece : short_enough(unit, most)) {
      if (!is_blank(piece)) units.push_back(piece);
    }
  };
  if (block.cut == Cut::lines) {
    for (const Line& line : lines_of(block.text)) add(line.text);
  } else {
    for (const std::string_view sentence : sentences_of(block.text)) add(sentence);
  }
  return units;
}

// From the begin of one view to the end of another one of the same text.
std::string_view span_of(std::string_view first, std::string_view last) {
  return {first.data(), static_cast<size_t>(last.data() + last.size() - first.data())};
}

// The first of the units before `end` that the next piece repeats.
size_t repeated_from(const std::vector<std::string_view>& units, size_t begin, size_t end, size_t overlap_bytes) {
  size_t first = end;
  while (first > begin + 1 && span_of(units[first - 1], units[end - 1]).size() <= overlap_bytes) --first;
  return first;
}

void cut_block(const Block& block, const ChunkOptions& options, std::vector<Chunk>& chunks) {
  const size_t overlap = block.cut == Cut::sentences ? options.overlap_bytes : 0;
  const std::vector<std::string_view> units = units_of(block, options.max_bytes - overlap);
  for (size_t begin = 0, done = 0; done < units.size();) {
    if (span_of(units[begin], units[done]).size() > options.max_bytes) begin = done;  // with the space between them
    size_t end = done + 1;
    while (end < units.size() && span_of(units[begin], units[end]).size() <= options.max_bytes) ++end;
    Place place = block.place;
    const std::string_view before = span_of(std::string_view(block.text.data(), 0), {units[begin].data(), 0});
    if (place.line > 0) place.line += static_cast<uint32_t>(std::count(before.begin(), before.end(), '\n'));
    chunks.push_back({std::string(span_of(units[begin], units[end - 1])), block.heading, place});
    done = end;
    begin = repeated_from(units, begin, end, overlap);
  }
}

}  // namespace

std::vector<Chunk> cut_chunks(const Document& document, const ChunkOptions& options) {
  CHECK(options.max_bytes >= 64 && 2 * options.overlap_bytes <= options.max_bytes);
  std::vector<Chunk> chunks;
  const Block* last = nullptr;  // the block that the last chunk may go on with
  for (const Block& block : document.blocks) {
    if (block.text.size() > options.max_bytes) {
      cut_block(block, options, chunks);
      last = nullptr;
      continue;
    }
    // Definitions of a file stand in one chunk as long as they are small; the first gives it its heading.
    const bool same_heading = last && (last->heading == block.heading || document.kind == Kind::code);
    const std::string_view between = block.cut == Cut::lines || document.kind != Kind::csv ? "\n\n" : "\n";
    const bool joins = same_heading && !block.stands_alone && !last->stands_alone &&
                       last->place.page == block.place.page &&
                       chunks.back().text.size() + between.size() + block.text.size() <= options.max_bytes;
    if (joins) {
      chunks.back().text.append(between).append(block.text);
    } else {
      chunks.push_back({block.text, block.heading, block.place});
    }
    last = &block;
  }
  return chunks;
}

}  // namespace chimere::documents
