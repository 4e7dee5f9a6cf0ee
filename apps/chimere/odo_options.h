// odo_options.h  The orchestrator of `chimere serve`: its options, its tools and its routes.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "odo/odo.h"
#include "odo/own_tools.h"
#include "orchestrator/chat_service.h"
#include "store/journal.h"
#include "tools/mcp_client.h"
#include "tools/skill_folder.h"
#include "tools/tool_keeper.h"
#include "tools/toolbox.h"
#include "web/page_fetcher.h"
#include "web/searxng.h"
#include "web/web_search.h"

namespace chimere::apps {

struct OdoOptions {
  bool is_off = false;
  std::string routes_folder;
  bool routes_by_model = false;  // the model is asked where rules and examples are not sure
  std::string config;         // YAML: servers of tools, policies; empty: odo.yaml of the data folder, where it is there
  std::string skills_folder;  // programs as tools; empty: skills/ of the data folder
  std::string searxng;        // a search server; empty: the web is not searched
  std::string prm;            // a model that judges answers and steps; empty: none
  std::optional<uint16_t> port;  // a second port, at which the orchestrator answers for the model
};

void add_odo_options(CLI::App& command, OdoOptions& options);

// What answers to the name `odo`, with all that it uses.
// What it is lent beside a model. All outlive it; null: there is none.
struct OdoLent {
  retrieval::Collections* collections = nullptr;
  orchestrator::ChatService* prm = nullptr;
  std::shared_ptr<store::Journal> journal = {};
  orchestrator::Embedder* embedder = nullptr;  // by whose vectors questions are routed
  orchestrator::Embedder* reranker = nullptr;  // that reads passages of pages again
};

class OdoParts {
 public:
  // `chat` outlives it. Null parts where it is off, or where the model answers no messages.
  static Result<std::unique_ptr<OdoParts>> open(const OdoOptions& options, orchestrator::ChatService& chat,
                                                OdoLent lent);
  // The same for models that come and go: each run brings its own. Null where it is off.
  static Result<std::unique_ptr<OdoParts>> open(const OdoOptions& options, odo::MemoryFinder memory, OdoLent lent);

  odo::Odo& odo() { return *odo_; }

 private:
  Status open_all(const OdoOptions& options, orchestrator::ChatService* chat, const odo::MemoryFinder& memory,
                  const OdoLent& lent);
  Status add_tools(const odo::MemoryFinder& memory, const retrieval::PairScorer& scorer);
  Status open_web(const std::string& searxng);
  Status read_config(const std::string& path);
  Status open_skills(const std::string& given);
  // From now on tools that change are found.
  void keep_tools();

  tools::Toolbox toolbox_;
  std::unique_ptr<web::Searxng> searxng_;
  std::unique_ptr<web::PageFetcher> pages_;
  std::unique_ptr<web::WebSearch> web_;
  std::unique_ptr<tools::McpServers> mcp_;
  std::unique_ptr<tools::SkillFolder> skills_;
  std::unique_ptr<odo::Odo> odo_;
  std::unique_ptr<tools::ToolKeeper> keeper_;  // ends first: it looks at the others
};

}  // namespace chimere::apps
