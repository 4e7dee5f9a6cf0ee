// serve.cpp  `chimere serve MODEL`: an OpenAI-compatible server.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include "base/platform/private_file.h"
#include "base/platform/process.h"
#include "base/platform/service_manager.h"
#include "cache/cache_folder.h"
#include "commands.h"
#include "common.h"
#include "configuration.h"
#include "data_folder.h"
#include "engram/library.h"
#include "gguf/gguf.h"
#include "kept_data.h"
#include "lan.h"
#include "model_config.h"
#include "odo_options.h"
#include "open_browser.h"
#include "orchestrator/chat_service.h"
#include "reloads.h"
#include "retrieval/collections.h"
#include "sampling_options.h"
#include "server/http/log.h"
#include "server/server.h"
#include "speculate.h"
#include "thinking.h"
#include "tokenizer/fingerprint.h"
#include "version.h"

namespace chimere::apps {
namespace {

struct ServeOptions {
  Configuration configuration;  // where its values come from
  ModelOptions model;
  KeptOptions kept;
  server::ServerConfig server;
  std::vector<std::string> api_keys;
  std::string api_keys_file;
  std::string chat_template_file;
  bool json_log = false;
  double request_timeout = 0;  // seconds
  int dump_on_stall = 0;
  int keep_responses = 60;  // minutes
  int context = 0;
  int parallel = 8;
  int queue = 64;
  double state_gb = 4;
  double cache_gb = 2;
  std::string cache_folder;
  std::optional<double> cache_disk_gb;
  bool no_disk_cache = false;
  bool open = false;
  LanOptions lan;
  OdoOptions odo;
  std::string engram;
  retrieval::NoteLimits note_limits;
  std::string embedding_model;  // a file, or none; empty: that of the box
  std::string rerank_model;
  std::vector<std::string> adapters;
  std::vector<std::string> model_folders;
  double models_gb = 0;
  uint64_t ram_bytes = 0;      // of all models that are loaded; 0: any
  bool says_state_gb = false;  // --state-gb was given
  int models_max = 0;
  double idle_unload = 0;  // minutes
  double idle_sleep = 0;   // minutes
  std::string model_config;
  SamplingOptions sampling;
  std::optional<bool> reasoning;  // what the template does by itself when absent
  orchestrator::ThinkingOptions thinking;
  SpeculateOptions speculate;
};

CacheConfig cache_config(const ServeOptions& o, uint64_t model_bytes) {
  CacheConfig cache;
  cache.ram_bytes = static_cast<uint64_t>(o.cache_gb * 1e9);
  cache.disk.log = [](const std::string& line) { spdlog::warn("{}", line); };
  if (o.no_disk_cache) return cache;
  cache.disk.folder = o.cache_folder.empty() ? default_cache_folder() : o.cache_folder;
  if (o.cache_disk_gb) {
    cache.disk.quota_bytes = static_cast<uint64_t>(*o.cache_disk_gb * 1e9);
  } else if (!cache.disk.folder.empty()) {
    const DiskQuota quota = default_quota(model_bytes, free_bytes_for(cache.disk.folder));
    cache.disk.quota_bytes = quota.all_models;
    cache.disk.model_quota_bytes = quota.one_model;
  }
  return cache;
}

void print_ready(const server::Server& server, const orchestrator::ChatService& service, const ServeOptions& o) {
  std::printf("\n%s is ready on %s  (context of %d tokens, %d answers at a time)\n\n",
              service.model_info().name.c_str(), server.url().c_str(), service.context_length(), o.parallel);
  if (const auto odo_url = server.odo_url()) std::printf("odo answers on %s\n\n", odo_url->c_str());
  // A model without a template continues text and answers no messages.
  const bool chats = service.model_info().chat;
  // With --lan the address that lets a browser in follows.
  if (chats && !o.server.pairing)
    std::printf("Open %s in a browser, or ask from another terminal:\n", server.url().c_str());
  std::printf("curl -N %s/v1/%s -H 'Content-Type: application/json'%s -d '{%s,\"stream\":true}'\n\n",
              server.url().c_str(), chats ? "chat/completions" : "completions",
              o.server.keys.empty() && !o.server.pairing ? "" : " -H \"Authorization: Bearer $CHIMERE_API_KEY\"",
              chats ? "\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]"
                    : "\"prompt\":\"Once upon a time\",\"max_tokens\":64");
  std::fflush(stdout);
}

// Those who are asked in by the program itself: the browsers of the network, and that of this desktop.
void invite(const server::Server& server, const ServeOptions& o) {
  server::Pairing* pairing = o.server.pairing.get();
  if (pairing) show_invitation(*pairing, server);
  if (!o.open || open_browser(page_address(pairing, server))) return;
  spdlog::warn("xdg-open was not found: open {} yourself", server.url());
}

Status add_keys(ServeOptions& o) {
  for (size_t i = 0; i < o.api_keys.size(); ++i) {
    TRY(o.server.keys.add("key-" + std::to_string(i + 1), o.api_keys[i], true));
  }
  if (!o.api_keys_file.empty()) TRY(o.server.keys.add_file(o.api_keys_file));
  return Ok{};
}

Status collect_keys(ServeOptions& o) {
  TRY(add_keys(o));
  if (!data_folder().empty()) {
    TRY(make_private_folders(data_folder()));
    o.server.key_usage = std::make_shared<server::KeyUsage>(key_usage_file());
  }
  return Ok{};
}

Status check_lora_folder(const std::string& folder) {
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return Ok{};
  return Error{Code::not_found, "--lora-dir " + folder + ": expected a folder of adapters, found " +
                                    (std::filesystem::exists(folder, error) ? "something else" : "nothing there")};
}

// What requests get that say nothing.
Status set_defaults(const ServeOptions& o, orchestrator::Defaults& defaults) {
  o.sampling.apply_to(defaults.sampling);
  TRY(defaults.sampling.validate(INT32_MAX));
  defaults.seed = o.sampling.seed;
  defaults.max_tokens = o.sampling.max_tokens;
  defaults.enable_thinking = o.reasoning;
  return Ok{};
}

void allow_connections(server::HttpConfig& http) {
  constexpr uint64_t kOwnFiles = 64;  // the model, the cache, the log
  const uint64_t files = allow_open_files(static_cast<uint64_t>(http.max_connections) + kOwnFiles);
  if (files >= static_cast<uint64_t>(http.max_connections) + kOwnFiles) return;
  http.max_connections = static_cast<int>(files > 2 * kOwnFiles ? files - kOwnFiles : files / 2);
  spdlog::warn("the system allows {} open files: at most {} connections at a time", files, http.max_connections);
}

// Of --vram: two models on one card share it, and the one for embeddings is the small one.
uint64_t companion_vram(const ServeOptions& o, const std::string& file) {
  return file.empty() ? 0 : o.model.vram_bytes / 8;
}

// Null when no file was named. Its threads are its own and sleep while nobody asks.
Result<std::unique_ptr<orchestrator::EmbeddingModel>> open_companion(const ServeOptions& o, const std::string& file) {
  if (file.empty()) return std::unique_ptr<orchestrator::EmbeddingModel>();
  ModelOptions options = o.model;
  options.path = file;
  options.cpu_moe = "0";  // was said of the other model
  options.vram_bytes = companion_vram(o, file);
  TRY_ASSIGN(auto model, load_model(options));
  engine::EngineConfig config;
  config.max_queued = o.queue;
  config.state_bytes = static_cast<uint64_t>(o.state_gb * 1e9);
  config.cache.ram_bytes = 0;
  return orchestrator::EmbeddingModel::open(std::move(model), std::move(config));
}

// The model that judges; null: none was given.
Result<std::unique_ptr<orchestrator::ChatService>> open_prm(const ServeOptions& o) {
  if (o.odo.prm.empty()) return std::unique_ptr<orchestrator::ChatService>();
  ModelOptions options = o.model;
  options.path = o.odo.prm;
  options.cpu_moe = "0";  // was said of the other model
  options.vram_bytes = companion_vram(o, o.odo.prm);
  TRY_ASSIGN(auto model, load_model(options));
  TRY_ASSIGN(auto chat_model, orchestrator::ChatModel::from_model(std::move(model)));
  engine::EngineConfig config;
  config.max_queued = o.queue;
  config.state_bytes = static_cast<uint64_t>(o.state_gb * 1e9);
  auto prm = std::make_unique<orchestrator::ChatService>(std::move(chat_model), std::move(config));
  if (!prm->model_info().chat) {
    return Error{Code::invalid_argument, "--prm " + o.odo.prm + ": expected a model that answers messages"};
  }
  return Result<std::unique_ptr<orchestrator::ChatService>>{std::move(prm)};
}

// That of the box is small, and leaves the card to the others.
Result<std::unique_ptr<orchestrator::EmbeddingModel>> open_embedder(const ServeOptions& o) {
  const std::string file = embedder_path(o.embedding_model);
  if (!o.embedding_model.empty() || file.empty()) return open_companion(o, file);
  ServeOptions own = o;
  own.model = {};
  own.model.backend = "cpu";
  own.model.threads = o.model.threads;
  return open_companion(own, file);
}

// A stop takes two seconds more than answers under way have (--drain), of which the first is for their last words. What
// the engine and the disk are still about then has the rest: a step with a long prompt may take longer, and what is not
// on the disk by then is computed again.
void end_in_time(std::chrono::steady_clock::time_point stop_began, std::chrono::milliseconds grace) {
  std::thread([end = stop_began + grace + std::chrono::milliseconds(1800)] {
    std::this_thread::sleep_until(end);
    std::_Exit(0);
  }).detach();
}

void declare_options(CLI::App* command, ServeOptions* o);

// In the order of `configuration`, each at its place.
Status apply_all(const Configuration& configuration, CLI::App& app, ServeOptions& o) {
  for (const GivenOption& setting : configuration.settings) {
    TRY(apply_setting(setting, app));
    if (setting.name == "state-gb") o.says_state_gb = true;
  }
  return Ok{};
}

// What a server that runs takes over on SIGHUP. All else holds from the next start on; routes and skills are looked at
// again whenever they are used.
constexpr std::string_view kReloaded[] = {"api-key", "api-keys-file", "rate-limit", "allow-host", "cors", "lora"};

// Adapters that were added to --lora are loaded, those that are gone are unloaded. One that can not be loaded is an
// error, and those before it are unloaded again.
Status take_over_adapters(const std::vector<std::string>& before, const std::vector<std::string>& now,
                          models::AdapterLibrary& library) {
  const auto is_in = [](const std::vector<std::string>& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  std::vector<std::string> gone, added;
  std::copy_if(before.begin(), before.end(), std::back_inserter(gone), [&](const auto& a) { return !is_in(now, a); });
  std::copy_if(now.begin(), now.end(), std::back_inserter(added), [&](const auto& a) { return !is_in(before, a); });
  const auto unload = [&](const std::vector<std::string>& arguments) {
    for (const std::string& text : arguments) {
      if (const auto argument = models::parse_adapter_argument(text); argument) {
        if (const Status s = library.unload(argument->name); !s) spdlog::debug("{}", s.error().message);
      }
    }
  };
  unload(gone);  // first: another file may come under the same name
  if (Status s = load_adapters(added, library); !s) {
    unload(added);
    TRY(load_adapters(gone, library));
    return s;
  }
  return Ok{};
}

// `adapters` is null where models come and go.
Status reload(ServeOptions& o, server::Server& server, models::AdapterLibrary* adapters) {
  ServeOptions fresh, nobodys;
  CLI::App app, trial;
  declare_options(&app, &fresh);
  declare_options(&trial, &nobodys);
  TRY_ASSIGN(Configuration next, read_configuration(of_line(o.configuration), o.configuration.file, trial));
  TRY(apply_all(next, app, fresh));
  TRY(add_keys(fresh));
  fresh.server.pairing = o.server.pairing;
  fresh.server.http.host = o.server.http.host;  // where we listen, whatever the file says now
  TRY(server::Server::check_rules(fresh.server));
  if (adapters) TRY(take_over_adapters(o.adapters, fresh.adapters, *adapters));
  TRY(server.reload(fresh.server));
  o.adapters = fresh.adapters;
  spdlog::info("reloaded: {} keys, a limit of {} requests a minute, {} allowed hosts, {} lists of origins, {} adapters",
               fresh.server.keys.size(), fresh.server.rate_limit, fresh.server.hosts.size(),
               fresh.server.origins.size(), fresh.adapters.size());
  for (const std::string& name : changed_names(o.configuration, next)) {
    const bool is_taken_over = std::find(std::begin(kReloaded), std::end(kReloaded), name) != std::end(kReloaded);
    if (!is_taken_over) spdlog::warn("'{}' has changed: that holds from the next start on", name);
  }
  o.configuration = std::move(next);
  return Ok{};
}

// Until a signal ends it.
void run(server::Server& server, ServeOptions& o, Reloads& reloads, models::AdapterLibrary* adapters) {
  reloads.start([&] {
    if (const Status s = reload(o, server, adapters); !s) {
      spdlog::error("not reloaded, all stays as it was: {}", s.error().message);
    }
  });
  tell_service_manager("READY=1");
  server.run();
  tell_service_manager("STOPPING=1");
  reloads.stop();
  spdlog::info("stopped");
  end_in_time(server.stop_began(), o.server.http.shutdown_grace);
}

using Progress = server::ModelShelf::Progress;

// What was learned from answers, and what of it is in use.
struct LearnedParts {
  std::shared_ptr<improve::ArtefactStore> store;  // null: nothing is
  std::shared_ptr<improve::InUse> in_use = nullptr;
};

// The tables of owners take part in their answers from now on.
std::shared_ptr<improve::InUse> use_learned(const std::shared_ptr<improve::ArtefactStore>& store,
                                            orchestrator::ChatModel& model) {
  const engram::Vocabulary vocabulary{vocabulary_fingerprint(model.tokenizer),
                                      static_cast<uint32_t>(model.tokenizer.n_vocab())};
  auto in_use = std::make_shared<improve::InUse>(store, vocabulary);
  model.memory.tables->use_learned([in_use](const std::string& owner) -> std::shared_ptr<const engram::NgramSource> {
    const auto served = in_use->of(owner);
    return served ? served->table : nullptr;
  });
  return in_use;
}

// `chimere improve run`, of the same model and folders; kind and owner come behind it.
std::vector<std::string> job_command(const ServeOptions& o) {
  std::vector<std::string> command = {"/proc/self/exe", "improve", "run", "--child", "--json"};
  if (!o.model.path.empty()) command.insert(command.end(), {"--model", o.model.path});
  if (!o.engram.empty()) command.insert(command.end(), {"--engram", o.engram});
  if (o.model.threads > 0) command.insert(command.end(), {"--threads", std::to_string(o.model.threads)});
  if (!o.kept.journal_file.empty()) {
    command.insert(command.end(), {"--journal", o.kept.journal_file, "--dir", improve_folder(o.kept)});
  }
  return command;
}

// The model with everything it was asked to have beside it.
Result<std::unique_ptr<orchestrator::ChatService>> open_model(const ServeOptions& o, const ModelOptions& options,
                                                              const std::string& chat_template,
                                                              const Progress& progress = {},
                                                              LearnedParts* learned = nullptr) {
  engine::EngineConfig config;
  config.context_length = o.context;
  config.max_running = o.parallel;
  o.speculate.apply_to(config);
  config.max_queued = o.queue;
  config.state_bytes = static_cast<uint64_t>(o.state_gb * 1e9);
  config.idle_sleep = std::chrono::seconds(static_cast<int64_t>(o.idle_sleep * 60));
  ModelOptions model_options = options;
  model_options.decode_rows = std::max(o.parallel, kDecodeTokens);
  model_options.speculate = o.speculate.mode;
  TRY_ASSIGN(auto draft_model, load_draft_model(o.speculate.draft_model, model_options));
  TRY_ASSIGN(auto model, load_model(model_options, progress));
  if (!model->draft_problem().empty()) spdlog::warn("the MTP block is not used: {}", model->draft_problem());
  config.cache = cache_config(o, model->file_bytes());
  if (const std::string warning = context_warning(*model, o.context); !warning.empty()) spdlog::warn("{}", warning);
  TRY_ASSIGN(auto chat_model, orchestrator::ChatModel::from_model(std::move(model), chat_template));
  TRY(add_draft_model(chat_model, std::move(draft_model)));
  chat_model.thinking = o.thinking;
  TRY(set_defaults(o, chat_model.defaults));
  chat_model.open_memories(o.engram, shipped_tables(), o.note_limits);
  if (learned && learned->store) learned->in_use = use_learned(learned->store, chat_model);
  TRY(load_adapters(o.adapters, *chat_model.adapters));
  for (const std::string& warning : chat_model.warnings) spdlog::warn("{}", warning);
  return std::make_unique<orchestrator::ChatService>(std::move(chat_model), std::move(config));
}

// Those of all folders, and the one that was named.
std::vector<server::ModelFile> served_files(const ServeOptions& o) {
  std::vector<server::ModelFile> files;
  for (const std::string& folder : o.model_folders) {
    auto found = server::find_models(server::model_folder(folder));
    if (!found) continue;  // it was there at the start
    files.insert(files.end(), found->begin(), found->end());
  }
  std::error_code error;
  const std::filesystem::path named = o.model.path;
  if (!o.model.path.empty()) {
    files.insert(files.begin(), {named.stem().string(), o.model.path, std::filesystem::file_size(named, error), 0});
  }
  return files;
}

void add_own_options(CLI::App& command, ServeOptions& o);

// The options of a model that has some of its own, and the template they name.
struct OwnOptions {
  ServeOptions options;
  std::string chat_template;
};
using OwnOptionsByName = std::map<std::string, OwnOptions>;

Status add_sections(const std::string& file, const ServeOptions& o, OwnOptionsByName& own) {
  TRY_ASSIGN(const auto sections, read_model_sections(file));
  for (const ModelSection& section : sections) {
    OwnOptions mine{o, {}};
    CLI::App app;
    app.set_help_flag();
    add_own_options(app, mine.options);
    const auto check = [&mine]() -> Status {
      orchestrator::Defaults defaults;
      TRY(set_defaults(mine.options, defaults));
      TRY_ASSIGN(mine.chat_template, read_chat_template(mine.options.chat_template_file));
      return Ok{};
    };
    TRY(check());
    TRY(apply_section(section, file, app, check));
    if (!own.emplace(section.name, std::move(mine)).second) {
      return error_at(file, section.place, section.name + ": another folder's file has options of this name, too");
    }
  }
  return Ok{};
}

// Before anything is served: a mistake in the file is not found when its model is asked for.
Result<OwnOptionsByName> read_own_options(const ServeOptions& o) {
  OwnOptionsByName own;
  if (!o.model_config.empty()) {
    TRY(add_sections(o.model_config, o, own));
    return Result<OwnOptionsByName>{std::move(own)};
  }
  for (const std::string& folder : o.model_folders) {
    const std::string file = server::model_folder(folder) + "/chimere.yaml";
    std::error_code error;
    if (std::filesystem::exists(file, error)) TRY(add_sections(file, o, own));
  }
  return Result<OwnOptionsByName>{std::move(own)};
}

// Files come and go, so that a name without one is no mistake; but it may be misspelt.
void warn_of_strangers(const OwnOptionsByName& own, const ServeOptions& o) {
  const auto files = served_files(o);
  for (const auto& entry : own) {
    const std::string& name = entry.first;
    const bool is_there = std::any_of(files.begin(), files.end(), [&](const auto& file) { return file.name == name; });
    if (!is_there) spdlog::warn("there are options for '{}', which no model is called", name);
  }
}

// Beside the weights on a card: the CUDA context, and the batches of a model of any size.
constexpr uint64_t kCardWorkingBytes = uint64_t{1} << 30;

uint64_t state_bytes(const ServeOptions& o) { return static_cast<uint64_t>(o.state_gb * 1e9); }

// Without a word about states a model fills no more than a quarter of what all have together.
void fit_states(ServeOptions& o) {
  for (const uint64_t budget : {o.ram_bytes, o.model.vram_bytes}) {
    if (budget > 0 && !o.says_state_gb) o.state_gb = std::min(o.state_gb, static_cast<double>(budget) / 4e9);
  }
}

// What a file will take. On a card it is what the engine may take there: weights in their wide form, states, batches.
server::ModelMemory planned_memory(const ServeOptions& o, const server::ModelFile& file, bool on_card) {
  if (!on_card) return {file.bytes + state_bytes(o), 0};
  const uint64_t wanted = file.bytes + file.bytes / 5 + state_bytes(o) + kCardWorkingBytes;
  return {o.model.cpu_moe == "0" ? 0 : file.bytes, std::min(wanted, o.model.vram_bytes)};
}

Status serve_folders(ServeOptions& o, const std::string& chat_template) {
  const bool names_one =
      !o.adapters.empty() || !o.odo.prm.empty() || !o.server.tags.empty() || !o.speculate.draft_model.empty();
  const bool names_embedder = !o.embedding_model.empty() && o.embedding_model != "none";
  if (names_embedder || !o.rerank_model.empty() || !o.model.drafter.empty() || names_one) {
    return Error{
        Code::invalid_argument,
        "--models: expected no --embedding-model, --rerank-model, --lora, --tags, --draft-model, --drafter or --prm "
        "beside it: put the "
        "model for embeddings into the folder and ask for it by its name; options of one model are in "
        "chimere.yaml"};
  }
  for (const std::string& folder : o.model_folders) TRY(server::find_models(server::model_folder(folder)));
  server::ShelfLimits limits;
  limits.bytes = static_cast<uint64_t>(o.models_gb * 1e9);
  limits.memory = {o.ram_bytes, o.model.vram_bytes};
  limits.count = o.models_max;
  limits.idle_unload = std::chrono::seconds(static_cast<int64_t>(o.idle_unload * 60));
  fit_states(o);
  TRY_ASSIGN(const OwnOptionsByName own, read_own_options(o));
  warn_of_strangers(own, o);
  TRY_ASSIGN(const models::BackendKind backend, backend_of(o.model));
  const bool on_card = backend == models::BackendKind::cuda;
  const auto options_of = [&](const server::ModelFile& file) -> const ServeOptions& {
    const auto mine = own.find(file.name);
    return mine == own.end() ? o : mine->second.options;
  };
  const auto load = [&](const server::ModelFile& file, const server::ModelMemory& share,
                        const Progress& progress) -> Result<server::ModelShelf::Opened> {
    ModelOptions options = o.model;
    options.path = file.path;
    options.vram_bytes = share.vram;
    const auto mine = own.find(file.name);
    TRY_ASSIGN(auto service, open_model(options_of(file), options,
                                        mine == own.end() ? chat_template : mine->second.chat_template, progress));
    // On a card it keeps to its share.
    const server::ModelMemory taken = on_card ? share : server::memory_of(*service, state_bytes(options_of(file)));
    return Result<server::ModelShelf::Opened>{{std::move(service), taken}};
  };
  const auto plan = [&](const server::ModelFile& file) { return planned_memory(options_of(file), file, on_card); };
  server::ModelShelf shelf([&o] { return served_files(o); }, load, limits, plan);
  const std::string first = o.model.path.empty() ? "" : std::filesystem::path(o.model.path).stem().string();
  const auto memory = [&shelf]() -> std::shared_ptr<orchestrator::MemoryService> {
    auto latest = shelf.latest();
    if (!latest) return nullptr;
    const auto held = std::make_shared<server::ModelShelf::Lease>(std::move(*latest));
    return {held, &(*held)->service->memory()};
  };
  TRY_ASSIGN(const auto odo,
             OdoParts::open(o.odo, memory,
                            {nullptr, nullptr, o.server.journal}));  // ends before the shelf: its runs hold models
  if (odo) o.server.odo = &odo->odo();
  Reloads reloads;
  o.server.http.on_hangup = [&reloads] { reloads.ask(); };
  TRY_ASSIGN(auto server, server::Server::listen(o.server, shelf, first));
  size_t n_files = 0;
  shelf.list([&](const server::ModelShelf::Listed&) { ++n_files; });
  std::printf(
      "\n%zu models are ready on %s; each is loaded when it is first asked for\n\n"
      "Open %s in a browser, or list them: curl %s/v1/models\n\n",
      n_files, server->url().c_str(), server->url().c_str(), server->url().c_str());
  if (const auto odo_url = server->odo_url()) std::printf("odo answers on %s\n\n", odo_url->c_str());
  std::fflush(stdout);
  invite(*server, o);
  run(*server, o, reloads, nullptr);
  server.reset();
  return Ok{};
}

Status serve(ServeOptions& o) {
  server::start_log(o.json_log ? server::LogFormat::json : server::LogFormat::text);
  for (const std::string& warning : o.configuration.warnings) spdlog::warn("{}", warning);
  // Before the minutes a large model takes to load.
  TRY(collect_keys(o));
  o.server.version = version_number();
  o.server.request_timeout = std::chrono::milliseconds(static_cast<int64_t>(o.request_timeout * 1000));
  o.server.keep_responses = std::chrono::minutes(o.keep_responses);
  o.server.watch.dump_on_stall = std::chrono::seconds(o.dump_on_stall);
  if (o.odo.is_off && o.odo.port) {
    return Error{Code::invalid_argument, "--odo-port: expected no --no-odo beside it"};
  }
  o.server.http.side_port = o.odo.port;
  TRY(open_to_lan(o.lan, o.server));
  TRY(server::Server::check(o.server));
  TRY(check_lora_folder(o.server.lora_folder));
  TRY(open_kept(o.kept, o.server));
  TRY_ASSIGN(const std::string chat_template, read_chat_template(o.chat_template_file));
  allow_connections(o.server.http);
  if (!o.model_folders.empty()) return serve_folders(o, chat_template);
  if (!o.model_config.empty()) {
    return Error{Code::invalid_argument, "--model-config: expected --models beside it"};
  }
  if (o.ram_bytes > 0) {
    return Error{Code::invalid_argument,
                 "--ram: expected --models beside it: one model takes what it needs, and --state-gb is what its states "
                 "may take"};
  }
  TRY(open_kept_of_one_model(o.kept, o.server));
  ModelOptions model_options = o.model;
  const bool in_box = o.embedding_model.empty();
  const std::string named_embedder = in_box ? "" : embedder_path(o.embedding_model);
  model_options.vram_bytes -=
      companion_vram(o, named_embedder) + companion_vram(o, o.rerank_model) + companion_vram(o, o.odo.prm);
  LearnedParts learned;
  TRY_ASSIGN(learned.store, open_learned(o.kept, o.server));
  TRY_ASSIGN(const auto opened, open_model(o, model_options, chat_template, {}, &learned));
  o.server.improve.in_use = learned.in_use;
  o.server.improve.command = job_command(o);
  orchestrator::ChatService& service = *opened;
  TRY_ASSIGN(const auto embedding_model, open_embedder(o));
  orchestrator::Embedder* const embedder = embedding_model ? &embedding_model->embedder() : nullptr;
  TRY_ASSIGN(const auto rerank_model, open_companion(o, o.rerank_model));
  if (rerank_model && !rerank_model->embedder().scores_pairs()) {
    return Error{Code::invalid_argument, "--rerank-model " + o.rerank_model + ": expected a model that scores pairs"};
  }
  if (rerank_model) o.server.reranker = &rerank_model->embedder();
  if (embedder) service.memory().passages().add_embedder(*embedder);
  o.server.chat_embeds = in_box;
  TRY_ASSIGN(const auto prm, open_prm(o));
  TRY_ASSIGN(const auto odo,
             OdoParts::open(o.odo, service,
                            {o.server.collections.get(), prm.get(), o.server.journal, in_box ? embedder : nullptr}));
  if (odo) o.server.odo = &odo->odo();
  if (!odo && o.odo.port) {
    return Error{Code::invalid_argument,
                 "--odo-port: expected a model that answers messages, found one without a chat "
                 "template (--chat-template)"};
  }
  Reloads reloads;
  o.server.http.on_hangup = [&reloads] { reloads.ask(); };
  TRY_ASSIGN(auto server, server::Server::listen(o.server, service, embedder));
  print_ready(*server, service, o);
  invite(*server, o);
  run(*server, o, reloads, &service.adapters());
  return Ok{};
}

void add_log_options(CLI::App& command, ServeOptions& o) {
  command
      .add_option_function<std::string>(
          "--log-format", [&o](const std::string& format) { o.json_log = format == "json"; }, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
  command.add_flag("--log-prompts", o.server.watch.log_prompts, "write the bodies of requests to the log");
  command
      .add_option("--dump-on-stall", o.dump_on_stall,
                  "write the engine's state to the log when it makes no step for so many seconds; 0: never")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
}

// What users may teach, in bytes and in numbers of users.
void add_engram_options(CLI::App& command, ServeOptions& o) {
  command.add_option("--engram", o.engram,
                     "folder of Engram tables that requests may name; what users taught is in its users/");
  const auto add = [&](const char* name, auto& limit, const char* description) {
    command.add_option(name, limit, description)->capture_default_str();
  };
  add("--engram-user-bytes", o.note_limits.file_bytes, "what one user may teach");
  add("--engram-user-notes", o.note_limits.file_notes, "texts that one user may teach");
  add("--engram-key-bytes", o.note_limits.key_bytes, "what a key and the users below it may teach");
  add("--engram-key-users", o.note_limits.key_files, "users below a key who may teach");
  add("--engram-all-bytes", o.note_limits.all_bytes, "what all users together may teach");
  add("--engram-all-users", o.note_limits.all_files, "users who may teach");
}

// What may differ from model to model: on the command line for all, in a file for one.
void add_own_options(CLI::App& command, ServeOptions& o) {
  command.add_option("--chat-template", o.chat_template_file,
                     "Jinja file to render conversations with, or a name (chatml, llama3, gemma, ...); the file's own "
                     "template when absent");
  command.add_option("--ctx", o.context, "tokens of one conversation; 0: what the model was made for")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option("--parallel", o.parallel, "answers at a time")->check(CLI::Range(1, 256))->capture_default_str();
  command.add_option("--queue", o.queue, "requests that may wait")->check(CLI::Range(1, 100000))->capture_default_str();
  command
      .add_option("--state-gb", o.state_gb, "memory for the state of all conversations and of the prefix cache, in GB")
      ->check(above(0))
      ->capture_default_str();
  command
      .add_option("--cache-gb", o.cache_gb,
                  "of that, what prompts with the same beginning may share, at most half; 0: nothing is shared")
      ->check(at_least(0))
      ->capture_default_str();
  command
      .add_option("--idle-sleep", o.idle_sleep,
                  "minutes after which a model that nobody uses gives the card to other programs and waits in RAM "
                  "(docs/api.md, Sleep); 0: never")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option("--lora", o.adapters,
                     "NAME=FILE[:SCALE], a LoRA adapter that requests may name in `lora`; may be given several times");
  add_sampling_options(command, o.sampling);
  command
      .add_option_function<std::string>(
          "--reasoning",
          [&o](const std::string& text) {
            o.reasoning = text == "auto" ? std::nullopt : std::optional<bool>(text == "on");
          },
          "on, off, auto: whether the model thinks first where a request does not say; auto: as the template likes")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->default_str("auto");
  add_thinking_options(command, o.thinking);
  add_speculate_options(command, o.speculate);
}

// All options of the command. The file and the environment have the same ones (configuration.h).
void declare_options(CLI::App* command, ServeOptions* o) {
  o->server.http.handle_signals = true;
  command->add_option(
      "--config",
      "YAML file with options, or none; else CHIMERE_CONFIG, chimere/chimere.yaml in $XDG_CONFIG_HOME or "
      "~/.config, or /etc/chimere/chimere.yaml, the first that is there (docs/deploy.md)");
  add_model_options(*command, o->model, true);
  const std::string folders = "Several models (docs/api.md)";
  command
      ->add_option("--models", o->model_folders,
                   "folder of GGUF files that are served by their names and loaded when they are asked for; `ollama` "
                   "and `lmstudio` are the folders of these; may be repeated")
      ->allow_extra_args(false)
      ->group(folders);
  command->add_option("--models-gb", o->models_gb, "of the files that are loaded at a time, in GB; 0: any")
      ->check(at_least(0))
      ->capture_default_str()
      ->group(folders);
  command
      ->add_option("--ram", o->ram_bytes,
                   "of this machine's memory, what the models that are loaded may take together, e.g. 16GiB: weights, "
                   "working memory and states; with --vram it is the card's that they share; any when absent")
      ->transform(CLI::AsSizeValue(false))
      ->group(folders);
  command->add_option("--models-max", o->models_max, "models that are loaded at a time; 0: any number")
      ->check(at_least(0))
      ->capture_default_str()
      ->group(folders);
  command
      ->add_option("--model-config", o->model_config,
                   "YAML file with options of single models; else chimere.yaml of their folder, where there is one")
      ->group(folders);
  command
      ->add_option("--idle-unload", o->idle_unload,
                   "minutes after which a model that nobody uses is unloaded; 0: never")
      ->check(at_least(0))
      ->capture_default_str()
      ->group(folders);
  command->add_option("--host", o->server.http.host, "address to listen on; beyond this machine only with a key")
      ->capture_default_str();
  command->add_flag("--lan", o->lan.is_on,
                    "let browsers of this network in: shows an address with a code that works once, as a QR code, too");
  command->add_flag("--forget-browsers", o->lan.forget_browsers,
                    "with --lan: browsers that were let in before have to be let in again");
  command->add_option("--port", o->server.http.port, "port to listen on; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      ->add_option("--api-key", o->api_keys,
                   "key that clients must send as 'Authorization: Bearer KEY'; may be repeated; the variable "
                   "CHIMERE_API_KEY keeps it out of `ps`")
      ->allow_extra_args(false);
  command->add_option("--api-keys-file", o->api_keys_file,
                      "file with lines name:sha256hex of further keys; `chimere keys` makes them");
  command->add_option("--rate-limit", o->server.rate_limit, "requests a minute of each key or address; 0: any number")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command
      ->add_option("--allow-host", o->server.hosts,
                   "name beside localhost by which clients without a key may call the server, such as "
                   "host.docker.internal; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--cors", o->server.origins,
          "origin of web pages that may use the server (https://app.example), or a list of them; * needs a key")
      ->allow_extra_args(false);
  command
      ->add_option("--alias", o->server.aliases,
                   "names of the model, joined by commas: the first is shown instead of the file's; 'claude-*' stands "
                   "for all that begin so")
      ->allow_extra_args(false);
  command->add_option("--tags", o->server.tags, "words about the model that /v1/models shows")->delimiter(',');
  command->add_flag_callback(
      "--no-page", [o] { o->server.page = false; }, "do not serve the web page");
  command->add_flag_callback(
      "--no-slots", [o] { o->server.slots = false; }, "do not tell in /slots what is running");
  command->add_flag("--verbose", o->server.verbose,
                    "answers of chat completions say in `__verbose` what the model was given");
  command->add_flag("--strict-model-name", o->server.strict_model_name,
                    "refuse requests for a model of any other name, also where there is only one");
  command->add_option("--tls-cert", o->server.http.tls_certificate, "certificate chain in PEM form: serve HTTPS");
  command->add_option("--tls-key", o->server.http.tls_key, "private key of the certificate, in PEM form");
  command->add_option("--max-connections", o->server.http.max_connections, "connections at a time")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command
      ->add_option_function<int>(
          "--max-body-memory", [o](int mib) { o->server.http.max_body_memory = static_cast<size_t>(mib) << 20; },
          "MiB that the bodies of all requests under way may take together")
      ->check(CLI::Range(16, 1 << 20))
      ->default_str(std::to_string(o->server.http.max_body_memory >> 20));
  command
      ->add_option("--keep-responses", o->keep_responses,
                   "minutes for which answers of /v1/responses are kept in memory, for previous_response_id; 0: none")
      ->check(CLI::Range(0, 10080))
      ->capture_default_str();
  command->add_option("--request-timeout", o->request_timeout, "seconds an answer may take; 0: any time")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command
      ->add_option_function<int>(
          "--drain", [o](int seconds) { o->server.http.shutdown_grace = std::chrono::seconds(seconds); },
          "seconds that answers under way have to end in when the server is told to stop")
      ->check(CLI::Range(0, 3600))
      ->default_str("3");
  add_log_options(*command, *o);
  command->add_option(
      "--cache-dir", o->cache_folder,
      "folder of the prefix cache, which takes a folder inside of it where it holds other things; else prefix-cache/ "
      "in $CHIMERE_HOME or the XDG data folder");
  command
      ->add_option(
          "--cache-disk-gb", o->cache_disk_gb,
          "of the disk, what the prefix cache may take, in GB; else at most 8, 5 % of what is free, and 4 times "
          "the model's file")
      ->check(at_least(0));
  command->add_flag("--no-disk-cache", o->no_disk_cache, "keep computed prompts in memory only");
  command->add_flag("--open", o->open, "show the web page in the desktop's browser once the model is ready");
  add_engram_options(*command, *o);
  add_odo_options(*command, o->odo);
  add_kept_options(*command, o->kept);
  command->add_option("--embedding-model", o->embedding_model,
                      "GGUF file of an encoder or embedding model for collections, /v1/embeddings and /v1/rerank; else "
                      "assets/chimere-embed.gguf, where it is there; none: the model itself embeds");
  command->add_option("--rerank-model", o->rerank_model,
                      "GGUF file of a cross-encoder that reads again what a search in a collection has found");
  command->add_option("--lora-dir", o->server.lora_folder,
                      "folder of adapters (NAME.gguf) that clients may load by POST /v1/lora");
  add_own_options(*command, *o);
  add_drafter_option(*command, o->model);
}

// Puts into `o` what file and environment say and the command line does not.
Result<Configuration> configure(ServeOptions& o, const CLI::App& line) {
  ServeOptions nobodys;
  CLI::App trial, rest;
  declare_options(&trial, &nobodys);
  TRY_ASSIGN(Configuration configuration, read_configuration(settings_of_line(line), settings_file(line), trial));
  declare_options(&rest, &o);
  TRY(apply_all(configuration, rest, o));
  return Result<Configuration>{std::move(configuration)};
}

}  // namespace

Status check_serve(const Configuration& configuration) {
  ServeOptions o;
  CLI::App app;
  declare_options(&app, &o);
  TRY(apply_all(configuration, app, o));
  TRY(add_keys(o));
  // Any free port will do: the one that is named may be that of the server which runs.
  o.server.http.port = 0;
  if (o.odo.port) o.server.http.side_port = 0;
  TRY(o.lan.is_on ? check_address(o.server.http) : server::Server::check(o.server));
  TRY(check_lora_folder(o.server.lora_folder));
  TRY(read_chat_template(o.chat_template_file));
  orchestrator::Defaults defaults;
  TRY(set_defaults(o, defaults));
  for (const std::string& folder : o.model_folders) TRY(server::find_models(server::model_folder(folder)));
  if (!o.model_folders.empty()) TRY(read_own_options(o));
  for (const std::string& file : {o.embedding_model, o.rerank_model, o.speculate.draft_model, o.model.drafter}) {
    if (!file.empty()) TRY(gguf::File::open(file));
  }
  if (!o.model_folders.empty() && o.model.path.empty()) return Ok{};
  TRY_ASSIGN(const std::string path, model_path(o.model.path));
  TRY(gguf::File::open(path));
  return Ok{};
}

std::shared_ptr<void> declare_serve_options(CLI::App& command) {
  auto o = std::make_shared<ServeOptions>();
  declare_options(&command, o.get());
  return o;
}

void add_serve(CLI::App& app, Outcome& outcome) {
  auto o = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand("serve", "Serve a model over HTTP, as OpenAI's API does");
  declare_options(command, o.get());
  command->callback([o, command, &outcome] {
    const auto run = [&]() -> Status {
      TRY_ASSIGN(o->configuration, configure(*o, *command));
      return serve(*o);
    };
    if (Status s = run(); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
