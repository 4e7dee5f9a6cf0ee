// report.cpp  `chimere report`: what to send along with a question or a bug. Facts about the machine, the program and a
// model; no path, no name of a person or a machine, nothing that anybody wrote.
#include <sys/utsname.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backend/cpu/cpu_features.h"
#include "cache/cache_folder.h"
#include "commands.h"
#include "common.h"
#include "configuration.h"
#include "data_folder.h"
#include "engine/benchmark.h"
#include "gguf/summary.h"
#include "server_client.h"
#include "text/json.h"
#include "version.h"

namespace chimere::apps {
namespace {

struct ReportOptions {
  ModelOptions model;
  bool no_bench = false;
  bool asks_server = false;
  ServerAddress server;
};

// What stands behind `key` in a file of lines "key : value" or KEY="value"; empty when nothing does.
std::string value_in(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t begin = line.find_first_not_of(" \t:=\"", key.size());
    const size_t end = line.find_last_not_of(" \t\"");
    if (begin != std::string::npos && end >= begin) return line.substr(begin, end - begin + 1);
  }
  return "";
}

void print_line(const char* what, const std::string& value) {
  std::printf("- %s: %s\n", what, value.empty() ? "not known" : gguf::printable(value, 200).c_str());
}

void print_machine() {
  utsname system{};
  uname(&system);
  std::printf("## Machine\n\n");
  print_line("system", value_in("/etc/os-release", "PRETTY_NAME") + ", " + system.sysname + " " + system.release + " " +
                           system.machine);
  print_line("processor", value_in("/proc/cpuinfo", "model name") + ", " +
                              std::to_string(std::thread::hardware_concurrency()) + " threads, " +
                              std::string(cpu::name(cpu::active_isa())));
  print_line("memory", value_in("/proc/meminfo", "MemTotal") + ", free " + value_in("/proc/meminfo", "MemAvailable"));
  const auto cuda = models::backend_from_name("cuda");
  const auto chosen = models::backend_from_name("auto");
  print_line("card",
             !cuda ? cuda.error().message
                   : (chosen && *chosen == models::BackendKind::cuda ? "found" : "CUDA is built in, no card found"));
  if (const std::string folder = default_cache_folder(); !folder.empty()) {
    CacheUse all;
    for (const std::string& model : model_folders(folder)) {
      const CacheUse use = use_of_folder(model);
      all.bytes += use.bytes;
      all.entries += use.entries;
    }
    print_line("disk", std::to_string(free_bytes_for(folder) / 1'000'000'000) +
                           " GB free for the prompt cache, which has " + std::to_string(all.entries) + " entries in " +
                           std::to_string(all.bytes / 1'000'000) + " MB");
  }
}

Status print_model(const ReportOptions& o) {
  TRY_ASSIGN(const std::string path, model_path(o.model.path));
  TRY_ASSIGN(const gguf::File file, gguf::File::open(path));
  const gguf::Summary summary = gguf::summarize(file);
  std::printf("\n## Model\n\n");
  print_line("name", summary.model_name);
  print_line("architecture", summary.architecture);
  print_line("size", std::to_string(summary.file_bytes) + " bytes, " + human_count(summary.n_parameters) +
                         " parameters, " + std::to_string(summary.n_shards) + " files");
  std::string types;
  for (const gguf::TypeUse& use : summary.types) {
    types += (types.empty() ? "" : ", ") + std::string(name(use.type)) + " x " + std::to_string(use.n_tensors);
  }
  print_line("formats", types);
  return Ok{};
}

Status print_speed(const ReportOptions& o) {
  TRY_ASSIGN(auto model, load_model(o.model));
  engine::BenchmarkPlan plan;
  plan.n_prompt = 256;
  plan.n_decode = 32;
  plan.repeats = 3;
  TRY_ASSIGN(const engine::BenchmarkReport report, engine::run_benchmark(*model, plan));
  std::printf("\n## Speed\n\n");
  const auto tok_s = [](const engine::Timing& timing) {
    char text[64];
    std::snprintf(text, sizeof text, "%.1f tok/s +/- %.0f %%", timing.median, 100 * timing.spread);
    return std::string(text);
  };
  print_line("backend", models::backend_name(model->backend()));
  print_line("a prompt of 256 tokens", tok_s(report.prefill_tok_s));
  print_line("one answer", tok_s(report.decode.front().tok_s));
  if (report.device) print_line("card", report.device->name + ": " + report.device->memory);
  return Ok{};
}

// As file and environment say it. What is wrong with them is told, not what stands there.
void print_configuration() {
  CLI::App options;
  const auto values = declare_serve_options(options);
  std::printf("\n## Options of `chimere serve`\n\n");
  const auto configuration = read_configuration({}, settings_file(options), options);
  if (!configuration) {
    std::printf("- they can not be read; `chimere config check` says why\n");
    return;
  }
  std::printf("%s", shareable_configuration(*configuration, options).c_str());
}

// Without the names of keys, and of files that are not loaded.
Status print_server(const ReportOptions& o) {
  TRY_ASSIGN(const std::string answer, ServerClient(o.server, "--server").get("/v1/status"));
  auto parsed = parse_json(answer);
  if (!parsed || !parsed->is_object()) {
    return Error{Code::io, "--server: expected the status of a chimere server, found something else"};
  }
  auto status = std::move(*parsed);
  for (const char* list : {"keys", "models"}) {
    if (!status.contains(list)) continue;
    for (auto& entry : status[list]) {
      entry.erase("name");
      entry.erase("error");
    }
  }
  std::printf("\n## Server\n\n```json\n%s\n```\n", status.dump(1).c_str());
  return Ok{};
}

Status report(const ReportOptions& o) {
  std::printf("# chimere %s\n\n", version_number());
  print_machine();
  TRY(print_model(o));
  if (!o.no_bench) TRY(print_speed(o));
  print_configuration();
  if (o.asks_server) return print_server(o);
  std::printf("\nOf a server that runs, `--server URL` tells the rest; it has no prompts and no answers either.\n");
  return Ok{};
}

}  // namespace

void add_report(CLI::App& app, Outcome& outcome) {
  auto o = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand(
      "report", "Facts about this machine, the program and a model, to send along with a question or a bug");
  add_model_options(*command, o->model, true);
  command->add_flag("--no-bench", o->no_bench, "do not load the model and measure it");
  command
      ->add_option_function<std::string>(
          "--server",
          [o](const std::string& url) {
            o->server.url = url;
            o->asks_server = true;
          },
          "address of a server that runs, such as http://127.0.0.1:8081, whose status is added")
      ->type_name("URL");
  add_server_options(*command, o->server);
  command->footer(
      "It goes to standard output, and has no path, no key, no prompt and no answer in it:\n\n"
      "  chimere report > report.md");
  command->callback([o, &outcome] {
    if (Status s = report(*o); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
