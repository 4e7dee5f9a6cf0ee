// plan.cpp  chimere plan: where a model would go on this machine, what it would take, and how fast it would be, before
// anything is loaded.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "common.h"
#include "engine/expectation.h"
#include "engine/forecast.h"
#include "gguf/gguf.h"
#include "machine_file.h"
#include "models/config.h"
#include "models/registry.h"
#include "models/synthetic.h"

namespace chimere::apps {
namespace {

struct PlanOptions {
  ModelOptions model;
  std::string synthetic;
  int parallel = 1;
  bool json = false;
};

std::string size_text(double bytes) {
  char text[32];
  const bool is_large = bytes >= 1e9;
  std::snprintf(text, sizeof text, is_large ? "%.2f GB" : "%.1f MB", bytes / (is_large ? 1e9 : 1e6));
  return text;
}
std::string size_text(uint64_t bytes) { return size_text(static_cast<double>(bytes)); }

std::string speed_text(double tok_s) {
  char text[32];
  std::snprintf(text, sizeof text, tok_s >= 100 ? "%.0f" : "%.1f", tok_s);
  return text;
}

const char* tier_name(Tier tier) {
  switch (tier) {
    case Tier::card: return "card";
    case Tier::ram: return "RAM";
    case Tier::file: return "file";
  }
  return "";
}

// A file's header, or shapes alone.
struct Planned {
  std::optional<gguf::File> file;
  std::unique_ptr<models::WeightSource> source;
  Program program;
  models::Config config;
  std::string name;
  std::string folder;  // of the file
};

Result<std::unique_ptr<Planned>> open(const PlanOptions& o, const LoadOptions& load) {
  auto planned = std::make_unique<Planned>();
  if (!o.synthetic.empty()) {
    if (!o.model.path.empty()) return Error{Code::invalid_argument, "expected a model or --synthetic, found both"};
    TRY_ASSIGN(planned->source, models::synthetic_source(o.synthetic));
    planned->name = o.synthetic;
  } else {
    TRY_ASSIGN(const std::string path, model_path(o.model.path));
    TRY_ASSIGN(gguf::File file, gguf::File::open(path));
    planned->file.emplace(std::move(file));
    planned->source = std::make_unique<models::FileSource>(*planned->file);
    planned->name = std::filesystem::path(path).filename().string();
    planned->folder = std::filesystem::absolute(path).parent_path().string();
  }
  auto program = models::build_program(*planned->source, load.drafts);
  if (!program && load.drafts) program = models::build_program(*planned->source);
  if (!program) {
    program.error().message = planned->name + ": " + program.error().message;
    return std::move(program.error());
  }
  planned->program = std::move(*program);
  TRY(load.experts.apply_to(planned->program));
  TRY_ASSIGN(planned->config, models::read_config(*planned->source));
  return Result<std::unique_ptr<Planned>>{std::move(planned)};
}

// Kept figures, and those that were missing.
Result<engine::Machine> figures(const Planned& planned, const engine::ForecastOptions& o) {
  engine::Machine machine = kept_machine().value_or(engine::Machine{});
  const int threads = o.load.n_threads;
  const bool is_of_all = threads == 0 || threads == engine::host_facts().cores;
  if (!is_of_all) {
    machine.ram.clear();
    machine.products.clear();
    machine.threads = threads;
  }
  bool is_new = measure_missing(machine, engine::cpu_formats(planned.program));
  if (o.backend == models::BackendKind::cuda && !machine.card) {
    TRY_ASSIGN(machine.card, engine::measure_card());
    is_new = true;
  }
  if (is_new && is_of_all) static_cast<void>(static_cast<bool>(keep_machine(machine)));  // measured again next time
  return Result<engine::Machine>{std::move(machine)};
}

// Something that could be otherwise, and what it would bring.
struct Change {
  std::string what;
  double gain = 0;          // of decoding at the end of the context, as a share
  int64_t saved_bytes = 0;  // of states
};

std::vector<Change> changes(const Planned& planned, const engine::ForecastOptions& o, const engine::Machine& machine,
                            const engine::Forecast& now) {
  std::vector<Change> found;
  const auto look = [&](const char* what, const engine::ForecastOptions& other) {
    const auto then = engine::forecast(planned.program, other, machine);
    if (!then || now.decode_full_tok_s <= 0) return;
    const auto saved = static_cast<int64_t>(now.kv_bytes) - static_cast<int64_t>(then->kv_bytes);
    const Change change{what, then->decode_full_tok_s / now.decode_full_tok_s - 1, saved};
    if (change.gain >= 0.01 || saved > 0) found.push_back(change);
  };
  if (now.memory.is_partly_in_ram()) {
    engine::ForecastOptions other = o;
    other.more_card_bytes = int64_t{2} << 30;
    look("2 GiB more of the card's memory", other);
  }
  if (now.memory.n_layers_in_ram > 0) {
    engine::ForecastOptions other = o;
    other.backend = models::BackendKind::cpu;
    look("the CPU alone (--vram 0)", other);
  }
  if (now.memory.n_hosted > 0) {
    engine::ForecastOptions other = o;
    other.load.ram_experts = now.memory.card_reads ? RamExperts::cpu : RamExperts::card;
    look(now.memory.card_reads ? "experts in RAM computed by the CPU (--ram-experts cpu)"
                               : "experts in RAM read by the card (--ram-experts card)",
         other);
  }
  if (now.disk_bytes > 0) {
    engine::ForecastOptions other = o;
    other.ram_bytes += uint64_t{2} << 30;
    look("2 GiB more RAM", other);
  }
  if (o.load.kv.k == DType::F16 && o.load.kv.v == DType::F16 && !planned.program.kv_layers.empty()) {
    engine::ForecastOptions other = o;
    other.load.kv = {DType::Q8_0, DType::Q4_0, true};
    look("q8_0 keys and q4_0 values (--kv-k q8_0 --kv-v q4_0 --kv-rotate)", other);
  }
  std::stable_sort(found.begin(), found.end(), [](const Change& a, const Change& b) { return a.gain > b.gain; });
  if (found.size() > 2) found.resize(2);
  return found;
}

void print_json(const Planned& planned, const engine::ForecastOptions& o, const engine::Machine& machine,
                const engine::Forecast& f) {
  using Json = nlohmann::ordered_json;
  Json json = {{"model", planned.name},
               {"architecture", planned.config.arch},
               {"backend", models::backend_name(o.backend)},
               {"context", o.load.context_tokens},
               {"parallel", o.n_sequences}};
  json["weights"] = Json::array();
  for (const engine::ForecastPart& part : f.parts) {
    json["weights"].push_back({{"role", part.role},
                               {"tier", tier_name(part.tier)},
                               {"tensors", part.n_tensors},
                               {"bytes", part.bytes},
                               {"bytes_per_token", part.token_bytes}});
  }
  json["kv_bytes"] = f.kv_bytes;
  json["recurrent_bytes"] = f.recurrent_bytes;
  json["working_bytes"] = f.memory.working_bytes;
  json["ram_bytes"] = f.ram_bytes - f.disk_bytes;
  json["ram_budget_bytes"] = f.ram_budget_bytes;
  json["disk_bytes"] = f.disk_bytes;
  if (o.backend == models::BackendKind::cuda) {
    json["card"] = {{"name", f.memory.card},
                    {"bytes", f.card_bytes},
                    {"budget_bytes", f.memory.budget_bytes},
                    {"context_bytes", f.memory.context_bytes},
                    {"expert_layers", f.memory.n_mixtures},
                    {"expert_layers_in_ram", f.memory.n_hosted},
                    {"layers", f.memory.n_layers},
                    {"layers_in_ram", f.memory.n_layers_in_ram},
                    {"brought_bytes_on_card", f.memory.brought_bytes},
                    {"reads_experts", f.memory.card_reads},
                    {"slots_per_layer", f.memory.n_slots},
                    {"experts_in_ram_bytes_on_card", f.memory.mapped_bytes},
                    {"text", f.memory.text}};
  }
  const auto known = [](double speed) { return speed > 0 ? Json(speed) : Json(); };
  json["bytes_per_token"] = f.token_bytes;
  json["decode_tok_s"] = known(f.decode_tok_s);
  json["decode_full_context_tok_s"] = known(f.decode_full_tok_s);
  json["prompt_tok_s"] = known(f.prompt_tok_s);
  json["figures_of"] = machine.measured;
  json["changes"] = Json::array();
  for (const Change& c : changes(planned, o, machine, f)) {
    json["changes"].push_back({{"what", c.what}, {"decode_gain", c.gain}, {"saved_bytes", c.saved_bytes}});
  }
  std::printf("%s\n", json.dump().c_str());
}

void print_row(const std::string& what, const char* where, const std::string& bytes, const std::string& token) {
  std::printf("  %-34s %-5s %12s%s%s\n", what.c_str(), where, bytes.c_str(), token.empty() ? "" : "  ", token.c_str());
}

void print_memory(const engine::ForecastOptions& o, const engine::Forecast& f) {
  const bool on_card = o.backend == models::BackendKind::cuda;
  const char* home = on_card ? "card" : "RAM";
  std::printf("  %-34s %-5s %12s  %s\n", "", "where", "bytes", "a token");
  for (const engine::ForecastPart& part : f.parts) {
    const std::string token = part.token_bytes > 0 ? size_text(part.token_bytes) : "-";
    print_row(part.role + ", " + std::to_string(part.n_tensors) + (part.n_tensors == 1 ? " tensor" : " tensors"),
              tier_name(part.tier), size_text(part.bytes), token);
  }
  const std::string sequences = o.n_sequences == 1 ? "1 sequence" : std::to_string(o.n_sequences) + " sequences";
  if (f.kv_bytes > 0) {
    print_row("KV, " + sequences + " of " + std::to_string(o.load.context_tokens), home, size_text(f.kv_bytes), "");
  }
  if (f.recurrent_bytes > 0) {
    print_row("recurrent state, " + sequences, home, size_text(f.recurrent_bytes),
              size_text(2 * f.recurrent_bytes / static_cast<uint64_t>(o.n_sequences)));
  }
  if (f.memory.card_reads) {
    print_row("slots for " + std::to_string(f.memory.n_slots) + " experts a layer, stage", home,
              size_text(f.memory.mapped_bytes), "");
  }
  if (f.memory.n_layers_in_ram > 0) {
    print_row("room for what is brought of " + std::to_string(f.memory.n_layers_in_ram) + " layers", home,
              size_text(f.memory.brought_bytes), "");
  }
  print_row("working memory", home, size_text(f.memory.working_bytes), "");
  if (on_card) {
    print_row("CUDA context", home, size_text(f.memory.context_bytes), "");
    print_row("together, of " + size_text(f.memory.budget_bytes), home, size_text(f.card_bytes), "");
    if (!f.memory.is_partly_in_ram()) return;
  }
  print_row("together, of " + size_text(f.ram_budget_bytes), "RAM", size_text(f.ram_bytes - f.disk_bytes), "");
  if (f.disk_bytes > 0) print_row("experts beyond that", "disk", size_text(f.disk_bytes), "");
}

void print_text(const Planned& planned, const engine::ForecastOptions& o, const engine::Machine& machine,
                const engine::Forecast& f) {
  const bool on_card = o.backend == models::BackendKind::cuda;
  std::printf("%s (%s) on %s\n", planned.name.c_str(), planned.config.arch.c_str(),
              on_card ? f.memory.card.c_str() : "the CPU");
  print_memory(o, f);
  if (!f.memory.text.empty()) std::printf("\n%s\n", f.memory.text.c_str());
  std::printf("\nExpected: ");
  if (f.decode_tok_s > 0) {
    std::printf("%s tokens a second for one answer, %s at the end of the context", speed_text(f.decode_tok_s).c_str(),
                speed_text(f.decode_full_tok_s).c_str());
  } else {
    std::printf("no speed is known: `chimere doctor` measures the disk");
  }
  if (f.prompt_tok_s > 0) std::printf("; prompts %s", speed_text(f.prompt_tok_s).c_str());
  std::printf(".\nFrom what was measured at %s%s.\n", machine.measured.c_str(),
              f.disk_bytes > 0 ? ", with every expert as likely as any other" : "");
  const std::vector<Change> found = changes(planned, o, machine, f);
  for (const Change& c : found) {
    std::printf("%s: ", c.what.c_str());
    if (c.gain >= 0.01) std::printf("%+.0f %% speed at the end of the context", 100 * c.gain);
    if (c.saved_bytes > 0) {
      std::printf("%s%s less for the states", c.gain >= 0.01 ? ", " : "",
                  size_text(static_cast<double>(c.saved_bytes)).c_str());
    }
    std::printf("\n");
  }
}

Status run(const PlanOptions& o) {
  engine::ForecastOptions forecast_options;
  TRY_ASSIGN(forecast_options.backend, backend_of(o.model));
  if (forecast_options.backend == models::BackendKind::reference) {
    return Error{Code::unsupported, "--backend reference: expected cpu or cuda: the oracle is not for use"};
  }
  ModelOptions asked = o.model;
  ask_for_answers(asked, o.parallel, o.model.context);
  TRY_ASSIGN(LoadOptions load, load_options(asked));
  TRY_ASSIGN(const auto planned, open(o, load));
  forecast_options.n_sequences = o.parallel;
  if (load.context_tokens == 0) load.context_tokens = std::min(models::kUsualContext, planned->config.context_length);
  forecast_options.load = std::move(load);
  forecast_options.ram_bytes = forecast_options.load.ram_bytes;
  if (forecast_options.load.drafts_need_room && planned->program.has_drafts()) {
    const auto memory = models::plan_memory(planned->program, forecast_options.backend, forecast_options.load);
    if (!memory || memory->is_partly_in_ram()) planned->program.drop_drafts();
  }
  TRY_ASSIGN(engine::Machine machine, figures(*planned, forecast_options));
  auto found = engine::forecast(planned->program, forecast_options, machine);
  std::string card_problem;
  const auto can_not = [&](Code code) { return !found && found.error().code == code; };
  if (is_free_to_choose(o.model) && forecast_options.backend == models::BackendKind::cuda) {
    // What a load does then, too.
    engine::ForecastOptions on_cpu = forecast_options;
    on_cpu.backend = models::BackendKind::cpu;
    if (can_not(Code::exhausted) || can_not(Code::unsupported)) {
      card_problem = found.error().message;
    } else if (found && found->memory.n_layers_in_ram > 0) {
      const auto cpu = engine::forecast(planned->program, on_cpu, machine);
      card_problem = cpu ? engine::better_on_cpu(*found, *cpu) : "";
    }
    if (!card_problem.empty()) {
      forecast_options = on_cpu;
      found = engine::forecast(planned->program, forecast_options, machine);
    }
  }
  TRY_ASSIGN(engine::Forecast f, std::move(found));
  if (!card_problem.empty()) f.memory.text = "the CPU computes: " + card_problem;
  if (f.disk_bytes > 0 && !machine.disk && !planned->folder.empty()) {
    show_measuring("the disk of " + planned->folder);
    auto disk = engine::measure_disk(planned->folder, uint64_t{256} << 20);
    show_measuring("");
    if (disk) machine.disk = *disk;
    const std::string text = f.memory.text;
    TRY_ASSIGN(f, engine::forecast(planned->program, forecast_options, machine));
    f.memory.text = text;
  }
  (o.json ? print_json : print_text)(*planned, forecast_options, machine, f);
  return Ok{};
}

}  // namespace

void add_plan(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command =
      app.add_subcommand("plan", "Say where a model would go, what it would take and how fast it would be");
  add_model_options(*command, options->model, true);
  command->add_option("--synthetic", options->synthetic, "MODEL or MODEL:MIX: shapes alone, as `bench` takes them");
  command->add_option("--ctx", options->model.context, "tokens of a conversation; 0: what is usual, 8192")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--parallel", options->parallel, "conversations at a time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option_function<double>(
          "--state-gb", [options](double gb) { options->model.state_bytes = static_cast<uint64_t>(gb * 1e9); },
          "memory for the states of all conversations, where that shall be free on a card")
      ->check(at_least(0));
  command
      ->add_option_function<std::string>(
          "--speculate",
          [options](const std::string& name) { options->model.speculate = *speculative::mode_from_text(name); },
          "with auto the file's MTP block is loaded where there is room, as `serve` does; off")
      ->check(CLI::IsMember({"auto", "off"}))
      ->default_str("auto");
  options->model.speculate = speculative::Mode::automatic;
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &outcome] {
    if (Status s = run(*options); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
