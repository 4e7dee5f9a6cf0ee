#include "odo_options.h"

#include <spdlog/spdlog.h>

#include <filesystem>

#include "common.h"
#include "data_folder.h"
#include "odo/web_answer.h"
#include "orchestrator/collection_models.h"
#include "text/yaml.h"
#include "tools/calculator.h"
#include "tools/clock.h"
#include "tools/mcp_config.h"
#include "tools/run_code.h"

namespace chimere::apps {
namespace {

// `given`, or NAME of the data folder; empty where there is neither.
std::string own_or(const std::string& given, const char* name) {
  if (!given.empty()) return given;
  const std::string home = data_folder();
  return home.empty() ? "" : home + "/" + name;
}

void tell_status(const tools::McpServerStatus& status) {
  if (!status.problem.empty()) spdlog::warn("MCP server {}: {}", status.name, status.problem);
  if (status.is_connected) spdlog::info("MCP server {}: {} tools", status.name, status.n_tools);
}

}  // namespace

void add_odo_options(CLI::App& command, OdoOptions& options) {
  command.add_flag("--no-odo", options.is_off, "do not offer the orchestrator, the models `odo` and `odo/...`");
  command
      .add_option("--odo-port", options.port,
                  "a second port of the same server, at which `odo` answers whoever asks for the model itself or names "
                  "none; 0: any free one")
      ->check(CLI::Range(0, 65535));
  command.add_option("--odo-routes", options.routes_folder,
                     "folder of your own routes (YAML) beside those of the box; else routes/ in the data folder");
  command.add_flag(
      "--odo-route-by-model", options.routes_by_model,
      "ask the model itself for the route where rules and examples are not sure; for larger models, as the "
      "one in the box can not choose");
  command.add_option("--odo-skills", options.skills_folder,
                     "folder of skills (YAML): programs of yours that a model may call, in a sandbox and without a "
                     "shell; else skills/ in the data folder");
  command.add_option("--odo-config", options.config,
                     "YAML file with servers of tools (mcp_servers) and policies of tools; else odo.yaml in the data "
                     "folder, where there is one");
  command.add_option(
      "--prm", options.prm,
      "GGUF file of a model that judges answers and their steps for searches and the gate, by how likely it "
      "says + or -; without one the adapter `prm` does, where it is loaded, or the model's own confidence");
  command.add_option("--searxng", options.searxng,
                     "address of a SearXNG server, such as http://127.0.0.1:8888, for searches of the web; without one "
                     "nothing is sent anywhere");
}

Result<std::unique_ptr<OdoParts>> OdoParts::open(const OdoOptions& options, orchestrator::ChatService& chat,
                                                 OdoLent lent) {
  if (options.is_off || !chat.model_info().chat) return std::unique_ptr<OdoParts>();
  auto parts = std::make_unique<OdoParts>();
  TRY(parts->open_all(options, &chat, odo::memory_of(chat), lent));
  return Result<std::unique_ptr<OdoParts>>{std::move(parts)};
}

Result<std::unique_ptr<OdoParts>> OdoParts::open(const OdoOptions& options, odo::MemoryFinder memory, OdoLent lent) {
  if (options.is_off) return std::unique_ptr<OdoParts>();
  auto parts = std::make_unique<OdoParts>();
  TRY(parts->open_all(options, nullptr, memory, lent));
  return Result<std::unique_ptr<OdoParts>>{std::move(parts)};
}

Status OdoParts::open_all(const OdoOptions& options, orchestrator::ChatService* chat, const odo::MemoryFinder& memory,
                          const OdoLent& lent) {
  odo::Shelves shelves;
  shelves.collections = lent.collections;
  if (lent.reranker) shelves.scorer = orchestrator::pair_scorer(*lent.reranker);
  TRY(open_web(options.searxng));
  shelves.web = web_.get();
  TRY(add_tools(memory, shelves.scorer));
  if (lent.collections) TRY(toolbox_.add(odo::make_retrieve(*lent.collections)));
  TRY(open_skills(options.skills_folder));
  const std::string config_path = own_or(options.config, "odo.yaml");
  std::error_code ignored;
  if (!options.config.empty() || (!config_path.empty() && std::filesystem::exists(config_path, ignored))) {
    TRY(read_config(config_path));
  }
  odo::OdoConfig config;
  config.route_folders.push_back(shipped_routes());
  if (const std::string own = own_or(options.routes_folder, "routes"); !own.empty()) {
    config.route_folders.push_back(own);
  }
  config.servers = mcp_.get();
  config.prm = lent.prm;
  config.asks_model_for_routes = options.routes_by_model;
  config.journal = lent.journal;
  config.embedder = lent.embedder;
  if (skills_) {
    config.tool_problems = [this] { return skills_->problems(); };
    config.skills = [this] { return skills_->names(); };
  }
  odo_ = std::make_unique<odo::Odo>(chat, toolbox_, shelves, std::move(config));
  for (const auto& [file, problem] : odo_->routes()->problems) spdlog::warn("route left out: {}", problem);
  keep_tools();
  return Ok{};
}

Status OdoParts::open_web(const std::string& searxng) {
  if (searxng.empty()) return Ok{};
  web::Searxng::Options options;
  options.endpoint = searxng;
  TRY_ASSIGN(searxng_, web::Searxng::create(std::move(options)));
  web::PageFetcher::Options pages;
  pages.pdf_text = odo::pdf_page_text;
  pages_ = std::make_unique<web::PageFetcher>(std::move(pages));
  web_ = std::make_unique<web::WebSearch>(*searxng_, *pages_);
  return Ok{};
}

Status OdoParts::add_tools(const odo::MemoryFinder& memory, const retrieval::PairScorer& scorer) {
  TRY(toolbox_.add(tools::make_calculator()));
  TRY(toolbox_.add(tools::make_clock()));
  TRY(toolbox_.add(odo::make_remember(memory)));
  TRY(toolbox_.add(odo::make_forget(memory)));
  if (web_) {
    TRY(toolbox_.add(odo::make_web_search(*web_, scorer)));
    TRY(toolbox_.add(odo::make_fetch(*pages_)));
  }
  // A program that a model wrote runs in a sandbox, and only where a person who looks at it says so.
  if (auto run_code = tools::make_run_code()) {
    TRY(toolbox_.add(*run_code, tools::Policy::ask));
  } else {
    spdlog::info("run_code is not offered: {}", run_code.error().message);
  }
  return Ok{};
}

// Where a sandbox can not be made none is offered: said where somebody asked for them, or has some.
Status OdoParts::open_skills(const std::string& given) {
  const std::string folder = own_or(given, "skills");
  std::error_code error;
  const bool is_there = !folder.empty() && std::filesystem::is_directory(folder, error);
  if (!is_there && !given.empty()) {
    return Error{Code::not_found, "--odo-skills " + given + ": expected a folder of skills"};
  }
  if (!is_there) return Ok{};
  if (const Status can = tools::skill_availability(); !can) {
    spdlog::warn("{}", can.error().message);
    return Ok{};
  }
  skills_ = std::make_unique<tools::SkillFolder>(folder, toolbox_);
  skills_->refresh();
  for (const auto& [file, problem] : skills_->problems()) spdlog::warn("skill left out: {}", problem);
  return Ok{};
}

void OdoParts::keep_tools() {
  std::vector<tools::ToolKeeper::Look> looks;
  if (mcp_) {
    looks.emplace_back([this](const tools::ToolContext& context) {
      for (const tools::McpServerStatus& status : mcp_->refresh(context)) tell_status(status);
    });
  }
  if (skills_) {
    looks.emplace_back([this, told = skills_->problems()](const tools::ToolContext&) mutable {
      skills_->refresh();
      auto now = skills_->problems();
      for (const auto& [file, problem] : now) {
        if (told.count(file) == 0 || told[file] != problem) spdlog::warn("skill not read again: {}", problem);
      }
      told = std::move(now);
    });
  }
  if (!looks.empty()) keeper_ = std::make_unique<tools::ToolKeeper>(std::move(looks));
}

Status OdoParts::read_config(const std::string& path) {
  TRY_ASSIGN(const YamlNode root, read_yaml(path));
  YamlFields fields(root, path);
  fields.find("mcp_servers");
  const YamlNode* policies = fields.find("tools");
  TRY(fields.end());
  TRY_ASSIGN(const auto servers, tools::read_mcp_servers(root, path));
  mcp_ = std::make_unique<tools::McpServers>(servers, toolbox_);
  tools::ToolContext context;
  context.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  mcp_->refresh(context);
  for (const tools::McpServerStatus& status : mcp_->status()) tell_status(status);
  if (!policies) return Ok{};
  YamlFields named(*policies, path);
  for (const auto& [name, value] : policies->pairs) {
    named.find(name);
    const auto policy = tools::parse_policy(value.word);
    if (!policy) {
      named.fail(value, name + ": " + policy.error().message);
    } else if (const Status known = toolbox_.set_policy(name, *policy); !known) {
      named.fail(value, known.error().message);
    }
  }
  return named.end();
}

}  // namespace chimere::apps
