// own_tools.h  The tools that need what the server has: collections, the web, memory.
#pragma once

#include <functional>
#include <memory>

#include "odo/lookup.h"
#include "orchestrator/chat_service.h"
#include "orchestrator/memory_service.h"
#include "tools/tool.h"
#include "web/page_fetcher.h"

namespace chimere::odo {

// All that they are given outlives them.
std::shared_ptr<tools::Tool> make_retrieve(retrieval::Collections& collections);
// `scorer`: reads the passages again; none: their words alone decide.
std::shared_ptr<tools::Tool> make_web_search(const web::WebSearch& search, retrieval::PairScorer scorer = {});
std::shared_ptr<tools::Tool> make_fetch(web::PageFetcher& pages);

// The memory to use now, held while it is; null: there is none, as no model is loaded. Notes are files that all models
// share, so that any model's will do. Called from any thread.
using MemoryFinder = std::function<std::shared_ptr<orchestrator::MemoryService>()>;
// Of a model that stays.
MemoryFinder memory_of(orchestrator::ChatService& chat);

// Notes of the one who asks; a call without an owner is refused, as everybody would read what it keeps.
std::shared_ptr<tools::Tool> make_remember(MemoryFinder memory);
std::shared_ptr<tools::Tool> make_forget(MemoryFinder memory);

}  // namespace chimere::odo
