// serve.cpp  `chimere serve MODEL`: an OpenAI-compatible server.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>

#include "commands.h"
#include "common.h"
#include "orchestrator/chat_service.h"
#include "server/server.h"

namespace chimere::apps {
namespace {

struct ServeOptions {
  ModelOptions model;
  server::ServerConfig server;
  int context = 0;
  int parallel = 8;
  int queue = 64;
  double state_gb = 4;
};

void print_ready(const server::Server& server, const orchestrator::ChatService& service, const ServeOptions& o) {
  std::printf("\n%s is ready on %s  (context of %d tokens, %d answers at a time)\n\n", service.model_name().c_str(),
              server.url().c_str(), service.context_length(), o.parallel);
  std::printf(
      "curl -N %s/v1/chat/completions -H 'Content-Type: application/json'%s -d "
      "'{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}],\"stream\":true}'\n\n",
      server.url().c_str(), o.server.api_key.empty() ? "" : " -H \"Authorization: Bearer $CHIMERE_API_KEY\"");
  std::fflush(stdout);
}

Status serve(const ServeOptions& o) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("chimere"));
  // Before the minutes a large model takes to load.
  TRY(server::Server::check(o.server));
  engine::EngineConfig config;
  config.context_length = o.context;
  config.max_running = o.parallel;
  config.max_queued = o.queue;
  config.state_bytes = static_cast<uint64_t>(o.state_gb * 1e9);
  ModelOptions model_options = o.model;
  model_options.decode_rows = std::max(o.parallel, kDecodeTokens);
  TRY_ASSIGN(auto model, load_model(model_options));
  TRY_ASSIGN(auto chat_model, orchestrator::ChatModel::from_model(std::move(model)));
  for (const std::string& warning : chat_model.warnings) spdlog::warn("{}", warning);
  orchestrator::ChatService service(std::move(chat_model), std::move(config));
  TRY_ASSIGN(auto server, server::Server::listen(o.server, service));
  print_ready(*server, service, o);
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
  command->add_option("--host", o->server.http.host, "address to listen on; beyond this machine only with a key")
      ->capture_default_str();
  command->add_option("--port", o->server.http.port, "port to listen on; 0: any free one")->capture_default_str();
  command
      ->add_option("--api-key", o->server.api_key,
                   "key that clients must send as 'Authorization: Bearer KEY'; the variable keeps it out of `ps`")
      ->envname("CHIMERE_API_KEY");
  command->add_option("--ctx", o->context, "tokens of one conversation; 0: what the model was made for")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--parallel", o->parallel, "answers at a time")->check(CLI::Range(1, 256))->capture_default_str();
  command->add_option("--queue", o->queue, "requests that may wait")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--state-gb", o->state_gb, "memory for the state of all conversations, in GB")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->callback([o, &outcome] {
    if (Status s = serve(*o); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
