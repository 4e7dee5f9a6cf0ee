// chunks.h  A page's text in pieces that fit into a prompt, and how well each fits a question by its words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chimere::web {

struct ChunkSizes {
  size_t bytes = 2048;   // about 512 tokens
  size_t overlap = 200;  // of the piece before, whole sentences
  size_t max_chunks = 64;
};

// Paragraphs together up to `bytes`; a longer paragraph is cut behind sentences, and a longer sentence between words
// or, at last, characters. A heading stays with what follows it. Valid UTF-8 in, valid UTF-8 out.
std::vector<std::string> chunk_text(std::string_view text, const ChunkSizes& sizes = {});

// BM25 (k1 = 1.2, b = 0.75) of each text for the question, with the texts themselves as the collection. Words are runs
// of letters and digits, compared without the case of ASCII by their first eight letters; of scripts without spaces
// every character is a word.
std::vector<double> bm25_scores(std::string_view question, const std::vector<std::string_view>& texts);

}  // namespace chimere::web
