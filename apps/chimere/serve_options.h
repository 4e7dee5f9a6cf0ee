// serve_options.h  What `chimere serve` is told, by its command line, the environment and files (configuration.h).
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "common.h"
#include "configuration.h"
#include "kept_data.h"
#include "lan.h"
#include "odo_options.h"
#include "orchestrator/chat_model.h"
#include "retrieval/note_library.h"
#include "sampling_options.h"
#include "server/server.h"
#include "speculate.h"

namespace chimere::apps {

struct ServeOptions {
  Configuration configuration;  // where its values come from
  ModelOptions model;
  KeptOptions kept;
  server::ServerConfig server;
  std::vector<std::string> api_keys;
  std::string api_keys_file;
  std::string chat_template_file;
  std::string template_kwargs;  // a JSON object
  bool json_log = false;
  std::string otlp;            // address of a collector, or none; empty: the environment says
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
  bool says_state_gb = false;  // --state-gb was given
  int models_max = 0;
  double idle_unload = 0;  // minutes
  double idle_sleep = 0;   // minutes
  SamplingOptions sampling;
  std::optional<bool> reasoning;  // what the template does by itself when absent
  int thinking_budget = -1;       // what the file says, or half of the context left
  orchestrator::ThinkingOptions thinking;
  SpeculateOptions speculate;
};

// All options of the command. The file and the environment have the same ones.
void declare_options(CLI::App& command, ServeOptions& o);
// What may differ from model to model: on the command line for all, in a file for one.
void add_own_options(CLI::App& command, ServeOptions& o);

// In the order of `configuration`, each at its place.
Status apply_all(const Configuration& configuration, CLI::App& app, ServeOptions& o);
// Puts into `o` what file and environment say and the command line does not.
Result<Configuration> configure(ServeOptions& o, const CLI::App& line);

// Keys of the command line and of the file, into those of the server.
Status add_keys(ServeOptions& o);
// What requests get that say nothing.
Status set_defaults(const ServeOptions& o, orchestrator::Defaults& defaults);

}  // namespace chimere::apps
