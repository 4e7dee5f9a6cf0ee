// lookup.h  Texts for a question, from the owner's collections and from the web, as a run uses them: told to the model
// with numbers, listed in the trace, and recognised where the answer cites them.
#pragma once

#include <map>
#include <mutex>
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

using tools::FoundText;

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
std::string as_numbered(const std::vector<FoundText>& found, size_t first = 1);
// Into the request, numbered as they are listed. `weight`: of their n-grams.
void tell(const std::vector<FoundText>& found, float weight, orchestrator::ChatRequest& request);

// All texts that a run has told the model, by the numbers it knows them by. Any thread.
class Sources {
 public:
  explicit Sources(std::vector<FoundText> found = {});

  // Numbers for the calls of one turn, side by side: of call i those from the result + i * kToldTexts on. So they do not
  // depend on which call ends first.
  size_t reserve(size_t n_calls);
  void put(size_t first, const std::vector<FoundText>& found);
  bool empty() const;
  // Every [n] of the answer that names one of them.
  std::vector<orchestrator::Citation> cited_in(std::string_view answer) const;

 private:
  mutable std::mutex mutex_;  // guards both
  std::map<size_t, FoundText> texts_;
  size_t next_ = 1;
};

}  // namespace chimere::odo
