// serve.cpp  `chimere serve MODEL`: an OpenAI-compatible server.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "commands.h"
#include "common.h"
#include "data_folder.h"
#include "open_browser.h"
#include "orchestrator/chat_service.h"
#include "server/server.h"

namespace chimere::apps {
namespace {

struct ServeOptions {
  ModelOptions model;
  server::ServerConfig server;
  std::vector<std::string> api_keys;
  std::string api_keys_file;
  std::string chat_template_file;
  int context = 0;
  int parallel = 8;
  int queue = 64;
  double state_gb = 4;
  double cache_gb = 2;
  std::string cache_folder;
  double cache_disk_gb = 8;
  bool no_disk_cache = false;
  bool open = false;
};

CacheConfig cache_config(const ServeOptions& o) {
  CacheConfig cache;
  cache.ram_bytes = static_cast<uint64_t>(o.cache_gb * 1e9);
  cache.disk.log = [](const std::string& line) { spdlog::warn("{}", line); };
  cache.disk.quota_bytes = static_cast<uint64_t>(o.cache_disk_gb * 1e9);
  if (o.no_disk_cache) return cache;
  cache.disk.folder = o.cache_folder;
  if (const std::string data = data_folder(); cache.disk.folder.empty() && !data.empty()) {
    cache.disk.folder = data + "/prefix-cache";
  }
  return cache;
}

void print_ready(const server::Server& server, const orchestrator::ChatService& service, const ServeOptions& o) {
  std::printf("\n%s is ready on %s  (context of %d tokens, %d answers at a time)\n\n", service.model_name().c_str(),
              server.url().c_str(), service.context_length(), o.parallel);
  std::printf(
      "curl -N %s/v1/chat/completions -H 'Content-Type: application/json'%s -d "
      "'{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}],\"stream\":true}'\n\n",
      server.url().c_str(), o.server.keys.empty() ? "" : " -H \"Authorization: Bearer $CHIMERE_API_KEY\"");
  std::fflush(stdout);
}

Status collect_keys(ServeOptions& o) {
  for (size_t i = 0; i < o.api_keys.size(); ++i) {
    TRY(o.server.keys.add("key-" + std::to_string(i + 1), o.api_keys[i]));
  }
  if (!o.api_keys_file.empty()) TRY(o.server.keys.add_file(o.api_keys_file));
  return Ok{};
}

// Empty when no file was named.
Result<std::string> read_chat_template(const std::string& path) {
  constexpr std::streamsize kMaxBytes = 1 << 20;
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{Code::io, "--chat-template " + path + ": can not be read"};
  std::string text(kMaxBytes, '\0');
  file.read(text.data(), kMaxBytes);
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.empty() || file.gcount() == kMaxBytes) {
    return Error{Code::invalid_argument,
                 "--chat-template " + path + ": expected a Jinja template of less than 1 MiB, found " +
                     (text.empty() ? "nothing" : "more")};
  }
  return text;
}

Status serve(ServeOptions& o) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("chimere"));
  // Before the minutes a large model takes to load.
  TRY(collect_keys(o));
  TRY(server::Server::check(o.server));
  TRY_ASSIGN(const std::string chat_template, read_chat_template(o.chat_template_file));
  engine::EngineConfig config;
  config.context_length = o.context;
  config.max_running = o.parallel;
  config.max_queued = o.queue;
  config.state_bytes = static_cast<uint64_t>(o.state_gb * 1e9);
  config.cache = cache_config(o);
  ModelOptions model_options = o.model;
  model_options.decode_rows = std::max(o.parallel, kDecodeTokens);
  TRY_ASSIGN(auto model, load_model(model_options));
  TRY_ASSIGN(auto chat_model, orchestrator::ChatModel::from_model(std::move(model), chat_template));
  for (const std::string& warning : chat_model.warnings) spdlog::warn("{}", warning);
  orchestrator::ChatService service(std::move(chat_model), std::move(config));
  TRY_ASSIGN(auto server, server::Server::listen(o.server, service));
  print_ready(*server, service, o);
  if (o.open && !open_browser(server->url())) spdlog::warn("xdg-open was not found: open {} yourself", server->url());
  server->run();
  spdlog::info("stopped");
  return Ok{};
}

}  // namespace

void add_serve(CLI::App& app, Outcome& outcome) {
  auto o = std::make_shared<ServeOptions>();
  o->server.http.handle_signals = true;
  CLI::App* command = app.add_subcommand("serve", "Serve a model over HTTP, as OpenAI's API does");
  add_model_options(*command, o->model, true);
  command->add_option("--chat-template", o->chat_template_file,
                      "Jinja file to render conversations with; the file's own template when absent");
  command->add_option("--host", o->server.http.host, "address to listen on; beyond this machine only with a key")
      ->capture_default_str();
  command->add_option("--port", o->server.http.port, "port to listen on; 0: any free one")->capture_default_str();
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
  command->add_option("--ctx", o->context, "tokens of one conversation; 0: what the model was made for")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--parallel", o->parallel, "answers at a time")->check(CLI::Range(1, 256))->capture_default_str();
  command->add_option("--queue", o->queue, "requests that may wait")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command
      ->add_option("--state-gb", o->state_gb,
                   "memory for the state of all conversations and of the prefix cache, in GB")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--cache-gb", o->cache_gb,
                   "of that, what prompts with the same beginning may share, at most half; 0: nothing is shared")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--cache-dir", o->cache_folder,
                      "folder of the prefix cache; else prefix-cache/ in $CHIMERE_HOME or the XDG data folder");
  command->add_option("--cache-disk-gb", o->cache_disk_gb, "of the disk, what the prefix cache may take, in GB")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--no-disk-cache", o->no_disk_cache, "keep computed prompts in memory only");
  command->add_flag("--open", o->open, "show the web page in the desktop's browser once the model is ready");
  command->callback([o, &outcome] {
    if (Status s = serve(*o); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
