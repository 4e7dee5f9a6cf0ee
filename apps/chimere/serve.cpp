// serve.cpp  `chimere serve MODEL`: an OpenAI-compatible server.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/platform/process.h"
#include "cache/cache_folder.h"
#include "commands.h"
#include "common.h"
#include "data_folder.h"
#include "open_browser.h"
#include "orchestrator/chat_service.h"
#include "sampling_options.h"
#include "server/http/log.h"
#include "server/server.h"
#include "speculate.h"
#include "thinking.h"

namespace chimere::apps {
namespace {

struct ServeOptions {
  ModelOptions model;
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
  std::string engram;
  retrieval::NoteLimits note_limits;
  std::string embedding_model;
  std::vector<std::string> adapters;
  std::vector<std::string> model_folders;
  double models_gb = 0;
  int models_max = 0;
  double idle_unload = 0;  // minutes
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
  // A model without a template continues text and answers no messages.
  const bool chats = service.model_info().chat;
  if (chats) std::printf("Open %s in a browser, or ask from another terminal:\n", server.url().c_str());
  std::printf("curl -N %s/v1/%s -H 'Content-Type: application/json'%s -d '{%s,\"stream\":true}'\n\n",
              server.url().c_str(), chats ? "chat/completions" : "completions",
              o.server.keys.empty() ? "" : " -H \"Authorization: Bearer $CHIMERE_API_KEY\"",
              chats ? "\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]"
                    : "\"prompt\":\"Once upon a time\",\"max_tokens\":64");
  std::fflush(stdout);
}

Status collect_keys(ServeOptions& o) {
  for (size_t i = 0; i < o.api_keys.size(); ++i) {
    TRY(o.server.keys.add("key-" + std::to_string(i + 1), o.api_keys[i]));
  }
  if (!o.api_keys_file.empty()) TRY(o.server.keys.add_file(o.api_keys_file));
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
uint64_t embedding_vram(const ServeOptions& o) { return o.embedding_model.empty() ? 0 : o.model.vram_bytes / 8; }

// Null when no file was named. Its threads are its own and sleep while nobody asks.
Result<std::unique_ptr<orchestrator::EmbeddingModel>> open_embedding_model(const ServeOptions& o) {
  if (o.embedding_model.empty()) return std::unique_ptr<orchestrator::EmbeddingModel>();
  ModelOptions options = o.model;
  options.path = o.embedding_model;
  options.cpu_moe = "0";  // was said of the other model
  options.vram_bytes = embedding_vram(o);
  TRY_ASSIGN(auto model, load_model(options));
  engine::EngineConfig config;
  config.max_queued = o.queue;
  config.state_bytes = static_cast<uint64_t>(o.state_gb * 1e9);
  config.cache.ram_bytes = 0;
  return orchestrator::EmbeddingModel::open(std::move(model), std::move(config));
}

// A stop takes five seconds at most, of which connections have four. What the engine and the disk are still about then
// has the rest: a step with a long prompt may take longer, and what is not on the disk by then is computed again.
void end_in_time(std::chrono::steady_clock::time_point stop_began) {
  std::thread([stop_began] {
    std::this_thread::sleep_until(stop_began + std::chrono::milliseconds(4800));
    std::_Exit(0);
  }).detach();
}

using Progress = server::ModelShelf::Progress;

// The model with everything it was asked to have beside it.
Result<std::unique_ptr<orchestrator::ChatService>> open_model(const ServeOptions& o, const ModelOptions& options,
                                                              const std::string& chat_template,
                                                              const Progress& progress = {}) {
  engine::EngineConfig config;
  config.context_length = o.context;
  config.max_running = o.parallel;
  o.speculate.apply_to(config);
  config.max_queued = o.queue;
  config.state_bytes = static_cast<uint64_t>(o.state_gb * 1e9);
  ModelOptions model_options = options;
  model_options.decode_rows = std::max(o.parallel, kDecodeTokens);
  model_options.speculate = o.speculate.mode;
  TRY_ASSIGN(auto model, load_model(model_options, progress));
  if (!model->draft_problem().empty()) spdlog::warn("the MTP block is not used: {}", model->draft_problem());
  config.cache = cache_config(o, model->file_bytes());
  if (const std::string warning = context_warning(*model, o.context); !warning.empty()) spdlog::warn("{}", warning);
  TRY_ASSIGN(auto chat_model, orchestrator::ChatModel::from_model(std::move(model), chat_template));
  chat_model.thinking = o.thinking;
  TRY(set_defaults(o, chat_model.defaults));
  chat_model.open_memories(o.engram, shipped_tables(), o.note_limits);
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

Status serve_folders(ServeOptions& o, const std::string& chat_template) {
  if (!o.embedding_model.empty() || !o.adapters.empty()) {
    return Error{Code::invalid_argument,
                 "--models: expected neither --embedding-model nor --lora beside it: put the model for embeddings into "
                 "the folder and ask for it by its name; adapters belong to one model"};
  }
  for (const std::string& folder : o.model_folders) TRY(server::find_models(server::model_folder(folder)));
  server::ShelfLimits limits;
  limits.bytes = static_cast<uint64_t>(o.models_gb * 1e9);
  limits.count = o.models_max;
  limits.idle_unload = std::chrono::seconds(static_cast<int64_t>(o.idle_unload * 60));
  const auto load = [&o, &chat_template](const server::ModelFile& file, const Progress& progress) {
    ModelOptions options = o.model;
    options.path = file.path;
    return open_model(o, options, chat_template, progress);
  };
  server::ModelShelf shelf([&o] { return served_files(o); }, load, limits);
  const std::string first = o.model.path.empty() ? "" : std::filesystem::path(o.model.path).stem().string();
  TRY_ASSIGN(auto server, server::Server::listen(o.server, shelf, first));
  size_t n_files = 0;
  shelf.list([&](const server::ModelShelf::Listed&) { ++n_files; });
  std::printf(
      "\n%zu models are ready on %s; each is loaded when it is first asked for\n\n"
      "Open %s in a browser, or list them: curl %s/v1/models\n\n",
      n_files, server->url().c_str(), server->url().c_str(), server->url().c_str());
  std::fflush(stdout);
  if (o.open && !open_browser(server->url())) spdlog::warn("xdg-open was not found: open {} yourself", server->url());
  server->run();
  spdlog::info("stopped");
  end_in_time(server->stop_began());
  server.reset();
  return Ok{};
}

Status serve(ServeOptions& o) {
  server::start_log(o.json_log ? server::LogFormat::json : server::LogFormat::text);
  // Before the minutes a large model takes to load.
  TRY(collect_keys(o));
  o.server.version = CHIMERE_VERSION;
  o.server.request_timeout = std::chrono::milliseconds(static_cast<int64_t>(o.request_timeout * 1000));
  o.server.keep_responses = std::chrono::minutes(o.keep_responses);
  o.server.watch.dump_on_stall = std::chrono::seconds(o.dump_on_stall);
  TRY(server::Server::check(o.server));
  TRY(check_lora_folder(o.server.lora_folder));
  TRY_ASSIGN(const std::string chat_template, read_chat_template(o.chat_template_file));
  allow_connections(o.server.http);
  if (!o.model_folders.empty()) return serve_folders(o, chat_template);
  ModelOptions model_options = o.model;
  model_options.vram_bytes -= embedding_vram(o);
  TRY_ASSIGN(const auto opened, open_model(o, model_options, chat_template));
  orchestrator::ChatService& service = *opened;
  TRY_ASSIGN(const auto embedding_model, open_embedding_model(o));
  if (embedding_model) service.memory().passages().add_embedder(embedding_model->embedder());
  TRY_ASSIGN(auto server,
             server::Server::listen(o.server, service, embedding_model ? &embedding_model->embedder() : nullptr));
  print_ready(*server, service, o);
  if (o.open && !open_browser(server->url())) spdlog::warn("xdg-open was not found: open {} yourself", server->url());
  server->run();
  spdlog::info("stopped");
  end_in_time(server->stop_began());
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

}  // namespace

void add_serve(CLI::App& app, Outcome& outcome) {
  auto o = std::make_shared<ServeOptions>();
  o->server.http.handle_signals = true;
  CLI::App* command = app.add_subcommand("serve", "Serve a model over HTTP, as OpenAI's API does");
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
  command->add_option("--models-max", o->models_max, "models that are loaded at a time; 0: any number")
      ->check(at_least(0))
      ->capture_default_str()
      ->group(folders);
  command
      ->add_option("--idle-unload", o->idle_unload,
                   "minutes after which a model that nobody uses is unloaded; 0: never")
      ->check(at_least(0))
      ->capture_default_str()
      ->group(folders);
  command->add_option("--chat-template", o->chat_template_file,
                      "Jinja file to render conversations with, or a name (chatml, llama3, gemma, ...); the file's own "
                      "template when absent");
  command->add_option("--host", o->server.http.host, "address to listen on; beyond this machine only with a key")
      ->capture_default_str();
  command->add_option("--port", o->server.http.port, "port to listen on; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      ->add_option("--api-key", o->api_keys,
                   "key that clients must send as 'Authorization: Bearer KEY'; may be repeated; the variable keeps it "
                   "out of `ps`")
      ->allow_extra_args(false)
      ->envname("CHIMERE_API_KEY");
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
  command->add_flag("--no-page{false}", o->server.page, "do not serve the web page");
  command->add_flag("--no-slots{false}", o->server.slots, "do not tell in /slots what is running");
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
  add_log_options(*command, *o);
  command->add_option("--ctx", o->context, "tokens of one conversation; 0: what the model was made for")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--parallel", o->parallel, "answers at a time")->check(CLI::Range(1, 256))->capture_default_str();
  command->add_option("--queue", o->queue, "requests that may wait")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command
      ->add_option("--state-gb", o->state_gb,
                   "memory for the state of all conversations and of the prefix cache, in GB")
      ->check(above(0))
      ->capture_default_str();
  command
      ->add_option("--cache-gb", o->cache_gb,
                   "of that, what prompts with the same beginning may share, at most half; 0: nothing is shared")
      ->check(at_least(0))
      ->capture_default_str();
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
  command->add_option("--embedding-model", o->embedding_model,
                      "GGUF file of an encoder or embedding model for /v1/embeddings and /v1/rerank; else the model "
                      "itself embeds");
  command->add_option("--lora", o->adapters,
                      "NAME=FILE[:SCALE], a LoRA adapter that requests may name in `lora`; may be given several times");
  command->add_option("--lora-dir", o->server.lora_folder,
                      "folder of adapters (NAME.gguf) that clients may load by POST /v1/lora");
  add_sampling_options(*command, o->sampling);
  command
      ->add_option_function<std::string>(
          "--reasoning",
          [o](const std::string& text) {
            o->reasoning = text == "auto" ? std::nullopt : std::optional<bool>(text == "on");
          },
          "on, off, auto: whether the model thinks first where a request does not say; auto: as the template likes")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->default_str("auto");
  add_thinking_options(*command, o->thinking);
  add_speculate_options(*command, o->speculate);
  command->fallthrough();  // --config may stand behind `serve`
  command->callback([o, &outcome] {
    if (Status s = serve(*o); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
