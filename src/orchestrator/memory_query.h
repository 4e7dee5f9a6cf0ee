// memory_query.h  What memory has about a text, for those who want to see it: notes by their words, tables by the n-grams
// that end the text and what followed them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "orchestrator/memory_files.h"
#include "tokenizer/tokenizer.h"

namespace chimere::orchestrator {

inline constexpr const char* kNotesDomain = "notes";  // the owner's notes
inline constexpr const char* kOwnDomain = "own";      // the owner's table

struct MemoryQuery {
  std::string owner;  // whose notes and table; empty: nobody's
  std::string text;
  std::string domain;  // kNotesDomain, kOwnDomain or a table for all; empty: the first two
  size_t top = 5;
  float min_similarity = 0;
};

struct MemoryEntry {
  std::string text;
  std::string domain;
  // 0 to 1. Of a note: how much of the question it covers. Of a table: the tokens at the end of the text that it knows,
  // of those it can look at.
  float similarity = 0;
};

// Best first. not_found names the domains there are. Nothing of another owner is looked at.
Result<std::vector<MemoryEntry>> query_memory(const MemoryFiles& files, const Tokenizer& tokenizer,
                                              const MemoryQuery& query);

}  // namespace chimere::orchestrator
