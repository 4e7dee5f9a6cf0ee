#include "serve_options.h"

#include "server/protocols/shared/generate_fields.h"
#include "thinking.h"

namespace chimere::apps {
namespace {

void add_log_options(CLI::App& command, ServeOptions& o) {
  command
      .add_option_function<std::string>(
          "--log-format", [&o](const std::string& format) { o.json_log = format == "json"; }, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
  command.add_flag("--log-prompts", o.server.watch.log_prompts, "write the bodies of requests to the log");
  command.add_option("--otlp", o.otlp,
                     "address of an OpenTelemetry collector that traces of requests are sent to (http://host:4318), or "
                     "none; else OTEL_EXPORTER_OTLP_ENDPOINT (docs/deploy.md)");
  command
      .add_option(
          "--dump-on-stall", o.dump_on_stall,
          "write the engine's state to the log when it makes no step for so many seconds, and answer /livez with "
          "503 until it does; 0: never")
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

void add_own_options(CLI::App& command, ServeOptions& o) {
  command.add_option("--chat-template", o.chat_template_file,
                     "Jinja file to render conversations with, or a name (chatml, llama3, gemma, ...); the file's own "
                     "template when absent");
  command.add_option("--chat-template-kwargs", o.template_kwargs,
                     "variables of the template where a request does not name them, as JSON: {\"lang\": \"fr\"}");
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
  command
      .add_option("--thinking-budget", o.thinking_budget,
                  "tokens of a thought where a request does not say; -1: what the file says, or half of the context")
      ->check(at_least(-1))
      ->capture_default_str();
  add_thinking_options(command, o.thinking);
  add_speculate_options(command, o.speculate);
}

void declare_options(CLI::App& command, ServeOptions& o) {
  o.server.http.handle_signals = true;
  command.add_option(
      "--config",
      "YAML file with options, or none; else CHIMERE_CONFIG, chimere/chimere.yaml in $XDG_CONFIG_HOME or "
      "~/.config, or /etc/chimere/chimere.yaml, the first that is there (docs/deploy.md)");
  add_model_options(command, o.model, true);
  const std::string folders = "Several models (docs/api.md)";
  command
      .add_option("--models", o.model_folders,
                  "folder of GGUF files that are served by their names and loaded when they are asked for; `ollama` "
                  "and `lmstudio` are the folders of these; may be repeated")
      ->allow_extra_args(false)
      ->group(folders);
  command.add_option("--models-gb", o.models_gb, "of the files that are loaded at a time, in GB; 0: any")
      ->check(at_least(0))
      ->capture_default_str()
      ->group(folders);
  command.add_option("--models-max", o.models_max, "models that are loaded at a time; 0: any number")
      ->check(at_least(0))
      ->capture_default_str()
      ->group(folders);
  command
      .add_option("--idle-unload", o.idle_unload, "minutes after which a model that nobody uses is unloaded; 0: never")
      ->check(at_least(0))
      ->capture_default_str()
      ->group(folders);
  command.add_option("--host", o.server.http.host, "address to listen on; beyond this machine only with a key")
      ->capture_default_str();
  command.add_flag("--lan", o.lan.is_on,
                   "let browsers of this network in: shows an address with a code that works once, as a QR code, too");
  command.add_flag("--forget-browsers", o.lan.forget_browsers,
                   "with --lan: browsers that were let in before have to be let in again");
  command.add_option("--port", o.server.http.port, "port to listen on; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      .add_option("--api-key", o.api_keys,
                  "key that clients must send as 'Authorization: Bearer KEY'; may be repeated; the variable "
                  "CHIMERE_API_KEY keeps it out of `ps`")
      ->allow_extra_args(false);
  command.add_option("--api-keys-file", o.api_keys_file,
                     "file with lines name:sha256hex of further keys; `chimere keys` makes them");
  command.add_option("--rate-limit", o.server.rate_limit, "requests a minute of each key or address; 0: any number")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command
      .add_option("--allow-host", o.server.hosts,
                  "name beside localhost by which clients without a key may call the server, such as "
                  "host.docker.internal; may be repeated")
      ->allow_extra_args(false);
  command
      .add_option("--cors", o.server.origins,
                  "origin of web pages that may use the server (https://app.example), or a list of them; * needs a key")
      ->allow_extra_args(false);
  command
      .add_option("--alias", o.server.aliases,
                  "names of the model, joined by commas: the first is shown instead of the file's; 'claude-*' stands "
                  "for all that begin so")
      ->allow_extra_args(false);
  command.add_option("--tags", o.server.tags, "words about the model that /v1/models shows")->delimiter(',');
  command.add_flag_callback(
      "--no-page", [&o] { o.server.page = false; }, "do not serve the web page");
  command.add_flag_callback(
      "--no-slots", [&o] { o.server.slots = false; }, "do not tell in /slots what is running");
  command.add_flag("--verbose", o.server.verbose,
                   "answers of chat completions say in `__verbose` what the model was given");
  command.add_flag("--strict-model-name", o.server.strict_model_name,
                   "refuse requests for a model of any other name, also where there is only one");
  command.add_option("--tls-cert", o.server.http.tls_certificate, "certificate chain in PEM form: serve HTTPS");
  command.add_option("--tls-key", o.server.http.tls_key, "private key of the certificate, in PEM form");
  command.add_option("--max-connections", o.server.http.max_connections, "connections at a time")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command
      .add_option_function<int>(
          "--max-body-memory", [&o](int mib) { o.server.http.max_body_memory = static_cast<size_t>(mib) << 20; },
          "MiB that the bodies of all requests under way may take together")
      ->check(CLI::Range(16, 1 << 20))
      ->default_str(std::to_string(o.server.http.max_body_memory >> 20));
  command
      .add_option("--keep-responses", o.keep_responses,
                  "minutes for which answers of /v1/responses are kept in memory, for previous_response_id; 0: none")
      ->check(CLI::Range(0, 10080))
      ->capture_default_str();
  command.add_option("--request-timeout", o.request_timeout, "seconds an answer may take; 0: any time")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command
      .add_option_function<int>(
          "--drain", [&o](int seconds) { o.server.http.shutdown_grace = std::chrono::seconds(seconds); },
          "seconds that answers under way have to end in when the server is told to stop")
      ->check(CLI::Range(0, 3600))
      ->default_str("3");
  add_log_options(command, o);
  command.add_option(
      "--cache-dir", o.cache_folder,
      "folder of the prefix cache, which takes a folder inside of it where it holds other things; else prefix-cache/ "
      "in $CHIMERE_HOME or the XDG data folder");
  command
      .add_option(
          "--cache-disk-gb", o.cache_disk_gb,
          "of the disk, what the prefix cache may take, in GB; else at most 8, 5 % of what is free, and 4 times "
          "the model's file")
      ->check(at_least(0));
  command.add_flag("--no-disk-cache", o.no_disk_cache, "keep computed prompts in memory only");
  command.add_flag("--open", o.open, "show the web page in the desktop's browser once the model is ready");
  add_engram_options(command, o);
  add_odo_options(command, o.odo);
  add_kept_options(command, o.kept);
  command.add_option(
      "--embedding-model", o.embedding_model,
      "GGUF file of an encoder or embedding model for collections, /v1/embeddings and /v1/rerank; else the "
      "encoder in the box, chimere-embed; none: words alone find documents, and the model itself embeds");
  command.add_option("--rerank-model", o.rerank_model,
                     "GGUF file of a cross-encoder that reads again what a search in a collection has found");
  command.add_option("--lora-dir", o.server.lora_folder,
                     "folder of adapters (NAME.gguf) that clients may load by POST /v1/lora");
  add_own_options(command, o);
  add_drafter_option(command, o.model);
}

Status apply_all(const Configuration& configuration, CLI::App& app, ServeOptions& o) {
  for (const GivenOption& setting : configuration.settings) {
    TRY(apply_setting(setting, app));
    if (setting.name == "state-gb") o.says_state_gb = true;
  }
  return Ok{};
}

Result<Configuration> configure(ServeOptions& o, const CLI::App& line) {
  ServeOptions nobodys;
  CLI::App trial, rest;
  declare_options(trial, nobodys);
  TRY_ASSIGN(Configuration configuration, read_configuration(settings_of_line(line), settings_file(line), trial));
  declare_options(rest, o);
  TRY(apply_all(configuration, rest, o));
  return Result<Configuration>{std::move(configuration)};
}

Status add_keys(ServeOptions& o) {
  for (size_t i = 0; i < o.api_keys.size(); ++i) {
    TRY(o.server.keys.add("key-" + std::to_string(i + 1), o.api_keys[i], true));
  }
  if (!o.api_keys_file.empty()) TRY(o.server.keys.add_file(o.api_keys_file));
  return Ok{};
}

Status set_defaults(const ServeOptions& o, orchestrator::Defaults& defaults) {
  o.sampling.apply_to(defaults.sampling);
  TRY(defaults.sampling.validate(INT32_MAX));
  defaults.seed = o.sampling.seed;
  defaults.max_tokens = o.sampling.max_tokens;
  if (!o.template_kwargs.empty()) {
    if (const Status read = server::read_template_variables(o.template_kwargs, defaults); !read) {
      return Error{read.error().code, "--chat-template-kwargs: " + read.error().message};
    }
  }
  if (o.reasoning) defaults.enable_thinking = o.reasoning;
  return Ok{};
}

}  // namespace chimere::apps
