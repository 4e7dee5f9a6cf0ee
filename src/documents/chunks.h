// chunks.h  A document in pieces that can be found and read alone.
//
// Neighbouring blocks below the same heading share a chunk as long as they fit. A block that does not fit is cut between
// sentences, and each piece begins with the end of the one before, so that what stands across a cut is whole in one of
// them; code is cut between lines, and its heading says what it belongs to.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "documents/document.h"

namespace chimere::documents {

struct ChunkOptions {
  size_t max_bytes = 1200;     // of one chunk's text: about 250 tokens, a long paragraph
  size_t overlap_bytes = 160;  // of a cut paragraph, repeated: a sentence or two
};

struct Chunk {
  std::string text;
  std::string heading;
  Place place;
};

// REQUIRES: max_bytes >= 64 and 2 * overlap_bytes <= max_bytes.
std::vector<Chunk> cut_chunks(const Document& document, const ChunkOptions& options = {});

}  // namespace chimere::documents
