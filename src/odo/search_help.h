// search_help.h  What models do for a search, of the web or of collections: a cross-encoder reads the passages again, and
// where somebody asks for it the model that answers writes further queries and says of each passage whether it helps.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "orchestrator/chat_service.h"
#include "retrieval/collection_types.h"
#include "web/web_search.h"

namespace chimere::odo {

struct SearchHelp {
  retrieval::PairScorer scorer = {};              // none: words alone decide between passages of pages
  orchestrator::ChatService* model = nullptr;     // null: it neither writes queries nor grades
  bool expands = false, grades = false;           // what it is asked for
  uint64_t owner = 0, cache_scope = 0;            // whose requests these are, as in GenerateOptions
  std::function<void(int32_t tokens)> told = {};  // what an answer of the model cost; none: nobody counts
};

// `help` outlives both.
web::SearchHooks hooks_of(const SearchHelp& help);
// None where nothing is graded.
retrieval::Grader grader_of(const SearchHelp& help, const web::WebContext& context);

// The words of one answer, by the likeliest tokens and without a thought. Blocks.
Result<std::string> answer_of(const SearchHelp& help, orchestrator::ChatRequest request,
                              const web::WebContext& context);

// One query a line, without marks of a list.
std::vector<std::string> queries_in(const std::string& text, size_t n);

}  // namespace chimere::odo
