// own_tools.h  The tools that need what the server has: collections, the web, memory.
#pragma once

#include <memory>

#include "odo/lookup.h"
#include "orchestrator/memory_service.h"
#include "tools/tool.h"
#include "web/page_fetcher.h"

namespace chimere::odo {

// All that they are given outlives them.
std::shared_ptr<tools::Tool> make_retrieve(retrieval::Collections& collections);
std::shared_ptr<tools::Tool> make_web_search(const web::WebSearch& search);
std::shared_ptr<tools::Tool> make_fetch(web::PageFetcher& pages);
// Notes of the one who asks; a call without an owner is refused, as everybody would read what it keeps.
std::shared_ptr<tools::Tool> make_remember(orchestrator::MemoryService& memory);
std::shared_ptr<tools::Tool> make_forget(orchestrator::MemoryService& memory);

}  // namespace chimere::odo
