// lookup.h  Texts for a question, from the owner's collections and from the web, as a run uses them: told to the model
// with numbers, listed in the trace, and recognised where the answer cites them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "odo/run_stream.h"
#include "odo/search_help.h"
#include "orchestrator/chat_request.h"
#include "retrieval/collections.h"
#include "tools/tool.h"
#include "web/web_search.h"

namespace chimere::odo {

struct FoundText {
  std::string title;
  std::string url;       // of a page
  std::string document;  // of a file
  std::string place;     // in the file
  std::string text;
  std::string collection = {};  // of the file
};

// Where texts come from; null: nowhere.
struct Shelves {
  retrieval::Collections* collections = nullptr;
  const web::WebSearch* web = nullptr;
  retrieval::PairScorer scorer =
      {};  // reads passages of pages again; none: their words decide (collections have their own)
};

inline constexpr size_t kToldTexts = 4;

// Of the documents of `call.owner`, the best first; a text that is not like the question is left out. `stages`: what the
// search did, each with what failed in it.
Result<std::vector<FoundText>> find_documents(const retrieval::Collections& collections, retrieval::SearchCall call,
                                              std::vector<web::SearchStep>& stages);

// Both are steps of the run and add to `found`; nothing where they fail: the step says why. What the model does for them
// is charged to the step.
void retrieve(const Shelves& shelves, const std::vector<std::string>& collections, const std::string& question,
              const SearchHelp& help, const tools::ToolContext& context, RunTeller& teller,
              std::vector<FoundText>& found);
void search_web(const Shelves& shelves, const web::SearchDepth& depth, const std::string& question,
                const SearchHelp& help, const tools::ToolContext& context, RunTeller& teller,
                std::vector<FoundText>& found);

// Of `names` those that the key has: a route may name collections that nobody made.
std::vector<std::string> collections_there(const Shelves& shelves, const std::string& key,
                                           const std::vector<std::string>& names);

// {"sources": [{"n", "title", "url" or "document" with "collection", "snippet"}], "stages": [{"stage", "ms", "n", "note"}]}
// of those from `first` on.
std::string sources_detail(const std::vector<FoundText>& found, const std::vector<web::SearchStep>& stages,
                           size_t first = 0);
// The texts of a tool's result, numbered.
std::string as_numbered(const std::vector<FoundText>& found);
// Into the request, numbered as they are listed. `weight`: of their n-grams.
void tell(const std::vector<FoundText>& found, float weight, orchestrator::ChatRequest& request);
// Every [n] of the answer that names one of them.
std::vector<orchestrator::Citation> citations_in(std::string_view answer, const std::vector<FoundText>& found);

}  // namespace chimere::odo
