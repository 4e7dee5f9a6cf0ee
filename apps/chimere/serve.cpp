// serve.cpp  `chimere serve MODEL`: an OpenAI-compatible server.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/platform/private_file.h"
#include "base/platform/process.h"
#include "commands.h"
#include "data_folder.h"
#include "gguf/gguf.h"
#include "model_file.h"
#include "own_options.h"
#include "reloads.h"
#include "serve_folders.h"
#include "serve_models.h"
#include "serve_options.h"
#include "serve_run.h"
#include "server/http/log.h"
#include "tracing.h"
#include "version.h"

namespace chimere::apps {
namespace {

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

void allow_connections(server::HttpConfig& http) {
  constexpr uint64_t kOwnFiles = 64;  // the model, the cache, the log
  const uint64_t files = allow_open_files(static_cast<uint64_t>(http.max_connections) + kOwnFiles);
  if (files >= static_cast<uint64_t>(http.max_connections) + kOwnFiles) return;
  http.max_connections = static_cast<int>(files > 2 * kOwnFiles ? files - kOwnFiles : files / 2);
  spdlog::warn("the system allows {} open files: at most {} connections at a time", files, http.max_connections);
}

Status open_tracer(ServeOptions& o) {
  TRY_ASSIGN(auto config, trace_config(o.otlp));
  if (!config) return Ok{};
  config->with_texts = o.server.watch.log_prompts;
  spdlog::info("traces are sent to {}", config->url);
  o.server.tracer = std::make_shared<server::Tracer>(std::move(*config));
  return Ok{};
}

// `chimere improve run`, of the same model and folders; kind and owner come behind it.
std::vector<std::string> job_command(const ServeOptions& o) {
  std::vector<std::string> command = {"/proc/self/exe", "improve", "run", "--child", "--json"};
  if (!o.model.path.empty()) command.insert(command.end(), {"--model", o.model.path});
  if (!o.engram.empty()) command.insert(command.end(), {"--engram", o.engram});
  if (o.model.threads > 0) command.insert(command.end(), {"--threads", std::to_string(o.model.threads)});
  command.insert(command.end(), {"--dir", improve_folder(o.kept)});
  return command;
}

// By which `model-options` may name the one model of a server.
std::string served_name(const std::string& given) {
  const auto path = model_path(given);
  return path ? std::filesystem::path(*path).stem().string() : "";
}

Status serve(ServeOptions& o) {
  server::start_log(o.json_log ? server::LogFormat::json : server::LogFormat::text);
  for (const std::string& warning : o.configuration.warnings) spdlog::warn("{}", warning);
  if (o.model_folders.empty()) TRY(use_own_options(o, served_name(o.model.path)));
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
  if (!o.model.path.empty()) TRY(check_model_file(o.model.path));
  TRY(open_kept(o.kept, o.server));
  TRY(open_tracer(o));
  TRY_ASSIGN(const std::string chat_template, read_chat_template(o.chat_template_file));
  allow_connections(o.server.http);
  if (!o.model_folders.empty()) return serve_folders(o, chat_template);
  fit_states(o);
  ModelOptions model_options = o.model;
  if (o.model.ram_bytes > 0) {
    TRY_ASSIGN(model_options.ram_bytes, weights_ram(o));
  }
  const bool in_box = o.embedding_model.empty();
  const std::string named_embedder = in_box ? "" : embedder_path(o.embedding_model);
  model_options.vram_bytes -=
      companion_vram(o, named_embedder) + companion_vram(o, o.rerank_model) + companion_vram(o, o.odo.prm);
  LearnedParts learned;
  TRY_ASSIGN(learned.store, open_learned(o.kept, o.server));
  TRY_ASSIGN(const auto opened, open_model(o, model_options, chat_template, {}, &learned));
  o.server.improve.in_use = learned.in_use;
  o.server.improve.command = job_command(o);
  // A URL may have a password in it, which a list of processes would show.
  if (!o.kept.journal.empty()) o.server.improve.environment = {"CHIMERE_JOURNAL=" + o.kept.journal};
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
  TRY_ASSIGN(const auto odo, OdoParts::open(o.odo, service,
                                            {o.server.collections.get(), prm.get(), o.server.journal,
                                             in_box ? embedder : nullptr, o.server.reranker}));
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
  const auto take_over = [&o, &service](const ServeOptions& fresh, const Configuration&) {
    return take_over_adapters(o.adapters, fresh.adapters, service.adapters());
  };
  run_server(*server, o, reloads, {"lora", take_over});
  return Ok{};
}

}  // namespace

Status check_serve(const Configuration& configuration) {
  ServeOptions o;
  CLI::App app;
  declare_options(app, o);
  TRY(apply_all(configuration, app, o));
  TRY(add_keys(o));
  // Any free port will do: the one that is named may be that of the server which runs.
  o.server.http.port = 0;
  if (o.odo.port) o.server.http.side_port = 0;
  TRY(o.lan.is_on ? check_address(o.server.http) : server::Server::check(o.server));
  TRY(check_lora_folder(o.server.lora_folder));
  if (!o.model.path.empty()) TRY(check_model_file(o.model.path));
  TRY(trace_config(o.otlp));
  TRY(read_chat_template(o.chat_template_file));
  orchestrator::Defaults defaults;
  TRY(set_defaults(o, defaults));
  for (const std::string& folder : o.model_folders) TRY(server::find_models(server::model_folder(folder)));
  TRY(own_options(o, configuration));
  for (const std::string& file :
       {embedder_path(o.embedding_model), o.rerank_model, o.odo.prm, o.speculate.draft_model, o.model.drafter}) {
    if (!file.empty()) TRY(gguf::File::open(file));
  }
  if (!o.model_folders.empty() && o.model.path.empty()) return Ok{};
  TRY_ASSIGN(const std::string path, model_path(o.model.path));
  TRY(gguf::File::open(path));
  return Ok{};
}

std::shared_ptr<void> declare_serve_options(CLI::App& command) {
  auto o = std::make_shared<ServeOptions>();
  declare_options(command, *o);
  return o;
}

void add_serve(CLI::App& app, Outcome& outcome) {
  auto o = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand("serve", "Serve a model over HTTP, as OpenAI's API does");
  declare_options(*command, *o);
  command->callback([o, command, &outcome] {
    const auto run = [&]() -> Status {
      TRY_ASSIGN(o->configuration, configure(*o, *command));
      return serve(*o);
    };
    if (Status s = run(); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
