#include "common.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/platform/executable_path.h"
#include "base/platform/process.h"
#include "chat/named_templates.h"
#include "data_folder.h"
#include "expected_speed.h"
#include "model_file.h"
#include "odo/judge.h"

namespace chimere::apps {
namespace {

CLI::Validator number_check(const std::string& expected, bool (*takes)(double, double), double limit) {
  const auto check = [=](std::string& text) {
    double found = 0;
    if (CLI::detail::lexical_cast(text, found) && takes(found, limit)) return std::string();
    return "expected " + expected + ", found " + text;
  };
  return CLI::Validator(check, "");
}

std::string shown(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

}  // namespace

CLI::Validator at_least(double least) {
  return number_check(
      shown(least) + " or more", [](double found, double limit) { return found >= limit; }, least);
}

CLI::Validator above(double limit) {
  return number_check(
      "more than " + shown(limit), [](double found, double most) { return found > most; }, limit);
}

void ask_for_answers(ModelOptions& options, int parallel, int context) {
  options.n_sequences = 1;
  options.decode_rows = std::max(parallel, kDecodeTokens);
  options.context = context;
}

void add_model_options(CLI::App& command, ModelOptions& o, bool positional) {
  command.add_option(positional ? "model,--model" : "--model", o.path,
                     "GGUF file (the first one of a split set); the model in the box when absent");
  command
      .add_option("--backend", o.backend,
                  "auto, cpu, cuda, or reference: slow, scalar, the oracle; auto: a CUDA card where there is one")
      ->capture_default_str();
  command.add_option("-t,--threads", o.threads, "threads to compute with; 0: one per core")->capture_default_str();
  command
      .add_option_function<uint64_t>(
          "--vram",
          [&o](uint64_t bytes) {
            o.vram_bytes = bytes;
            o.no_card = bytes == 0;
          },
          "of the card's memory, at most so much is used, e.g. 16GiB; all that is free when absent; 0: the CPU "
          "computes")
      ->transform(CLI::AsSizeValue(false));
  command
      .add_option("--cpu-moe", o.cpu_moe,
                  "the routed experts of the first N layers that have some stay in RAM; a number, all, or auto: what "
                  "it takes for the rest to fit on the card")
      ->capture_default_str();
  command
      .add_option("--gpu-layers", o.gpu_layers,
                  "layers on the card; the weights of the others stay in RAM and are brought for every pass; a number, "
                  "all, or auto: as many as fit")
      ->capture_default_str();
  command
      .add_option("--ram-experts", o.ram_experts,
                  "who computes with experts that stay in RAM beside a card: cpu, where they are; card, which reads "
                  "them and keeps those that are used most; auto: the card, where RAM has room for all of them")
      ->capture_default_str();
  command
      .add_option(
          "--ram", o.ram_bytes,
          "of this machine's memory, at most so much for weights, e.g. 12GiB; experts beyond it stay on disk and "
          "are read when they are used; nine tenths of what is free when absent")
      ->transform(CLI::AsSizeValue(false));
  command.add_option("--experts-folder", o.experts_folder,
                     "where experts are put that do not fit into RAM, on a fast disk with room for all of them; "
                     "experts/ in $CHIMERE_HOME or the XDG data folder when absent");
  command.add_option("--kv-k", o.kv_k, "type of cached keys: f32, f16, q8_0, q4_0")->capture_default_str();
  command.add_option("--kv-v", o.kv_v, "type of cached values: f32, f16, q8_0, q4_0")->capture_default_str();
  command.add_flag("--kv-rotate", o.kv_rotate, "Hadamard-rotate queries and keys: better quantised keys");
  command.add_option("--experts", o.experts,
                     "experts of a token, LEAST-MOST, by the entropy of its router, e.g. 2-6; as the file says when "
                     "absent (CPU)");
  command
      .add_option("--experts-entropy", o.experts_entropy,
                  "the router's entropy, as a share of its largest, at which a token gets the least and the most")
      ->expected(2)
      ->capture_default_str();
  command.add_flag("--exact", o.exact, "keep activations in float32 whatever the weights are (slower)");
}

namespace {

Result<ExpertRange> expert_range(const ModelOptions& o) {
  ExpertRange range;
  if (o.experts.empty()) return range;
  int end = 0;
  const bool read = std::sscanf(o.experts.c_str(), "%d-%d%n", &range.least, &range.most, &end) == 2;
  if (!read || static_cast<size_t>(end) != o.experts.size() || range.least < 1 || range.most < range.least) {
    return Error{Code::invalid_argument, "--experts: expected LEAST-MOST as in 2-6, found '" + o.experts + "'"};
  }
  range.entropy_low = o.experts_entropy[0];
  range.entropy_high = o.experts_entropy[1];
  return range;
}

}  // namespace

Result<LoadOptions> load_options(const ModelOptions& o) {
  LoadOptions options;
  auto type = [](const char* flag, const std::string& text) -> Result<DType> {
    if (auto t = dtype_from_name(text)) return *t;
    return Error{Code::invalid_argument, std::string(flag) + ": expected f32, f16, q8_0 or q4_0, found '" + text + "'"};
  };
  TRY_ASSIGN(options.kv.k, type("--kv-k", o.kv_k));
  TRY_ASSIGN(options.kv.v, type("--kv-v", o.kv_v));
  TRY_ASSIGN(options.experts, expert_range(o));
  options.kv.rotate = o.kv_rotate;
  options.exact = o.exact;
  options.n_threads = o.threads;
  options.device_bytes = o.vram_bytes;
  TRY_ASSIGN(options.cpu_moe, cpu_moe_from_text(o.cpu_moe));
  TRY_ASSIGN(options.gpu_layers, gpu_layers_from_text(o.gpu_layers));
  TRY_ASSIGN(options.ram_experts, ram_experts_from_text(o.ram_experts));
  TRY_ASSIGN(options.imposed_skew, imposed_skew_from_text(o.routing));
  options.ram_bytes = o.ram_bytes > 0 ? o.ram_bytes : available_memory_bytes() / 10 * 9;
  // What is imposed says nothing of the model, and is not kept.
  if (!options.imposed_skew) {
    options.experts_folder = o.experts_folder.empty() ? default_experts_folder() : o.experts_folder;
  }
  options.decode_rows = o.decode_rows;
  options.n_sequences = o.n_sequences;
  options.context_tokens = o.context;
  options.state_bytes = o.state_bytes;
  // A model that does not fit on the card as it is has no place for what may turn out to be of no use.
  const bool is_fitted = options.cpu_moe == kFittingMixtures && options.gpu_layers == kFittingLayers;
  options.drafts_need_room = o.speculate == speculative::Mode::automatic && is_fitted;
  const bool keeps_all = options.cpu_moe == 0 && options.gpu_layers < 0;
  const bool is_tight = o.speculate == speculative::Mode::automatic && !keeps_all && !is_fitted;
  options.drafts = speculative::uses_draft_pass(o.speculate) && !is_tight;
  options.drafter = o.drafter;
  if (isatty(STDERR_FILENO)) {
    const auto start = std::chrono::steady_clock::now();
    auto shown = std::make_shared<int>(-1);
    options.progress = [start, shown](uint64_t done, uint64_t total) {
      const bool slow = std::chrono::steady_clock::now() - start > std::chrono::seconds(1);
      const int percent = total ? static_cast<int>(done * 100 / total) : 100;
      if (!slow || percent == *shown) return;
      *shown = percent;
      std::fprintf(stderr, "\rloading %3d %%  %.1f of %.1f GB%s", percent, static_cast<double>(done) / 1e9,
                   static_cast<double>(total) / 1e9, done == total ? "\n" : "");
    };
  }
  return Result<LoadOptions>{std::move(options)};
}

namespace {

// `assets/NAME` of the clone the program was built in, or `share/chimere/NAME` in a folder above the program; empty
// when there is neither. `looked_in` gets the folders that have neither.
std::filesystem::path beside_program(const char* name, std::string* looked_in = nullptr) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::path folder = executable_folder(); !folder.empty(); folder = folder.parent_path()) {
    for (const char* place : {"assets", "share/chimere"}) {
      const fs::path file = folder / place / name;
      if (fs::exists(file, error)) return file;
    }
    if (looked_in) *looked_in += (looked_in->empty() ? "" : ", ") + folder.string();
    if (folder == folder.root_path()) break;
  }
  return {};
}

}  // namespace

Result<std::string> model_path(const std::string& given) {
  if (!given.empty()) {
    TRY(check_model_file(given));
    return given;
  }
  constexpr const char* kName = "chimere-nano.gguf";
  std::string looked_in;
  if (const auto file = beside_program(kName, &looked_in); !file.empty()) return file.string();
  return Error{Code::not_found, std::string("no model was given, and the model in the box is not beside the program: "
                                            "looked for assets/") +
                                    kName + " and share/chimere/" + kName + " in " + looked_in +
                                    "; give a GGUF file, or copy the folder assets of the clone beside the program"};
}

std::string embedder_path(const std::string& given) {
  if (given == "none") return "";
  return given.empty() ? beside_program("chimere-embed.gguf").string() : given;
}

Result<std::shared_ptr<const retrieval::Matcher>> open_matcher() {
  const std::string file = beside_program("chimere-matcher.gguf").string();
  if (file.empty()) return std::shared_ptr<const retrieval::Matcher>();
  TRY_ASSIGN(retrieval::Matcher matcher, retrieval::Matcher::open(file));
  return std::shared_ptr<const retrieval::Matcher>(std::make_shared<retrieval::Matcher>(std::move(matcher)));
}

std::string shipped_tables() { return beside_program("engram").string(); }
std::string shipped_routes() { return beside_program("routes").string(); }
static std::string shipped_improve_file(const char* name) {
  const auto folder = beside_program("improve");
  return folder.empty() ? std::string() : (folder / name).string();
}
std::string shipped_guard() { return shipped_improve_file("guard.jsonl"); }
std::string shipped_general_text() { return shipped_improve_file("general.txt"); }

Result<models::BackendKind> backend_of(const ModelOptions& o) {
  if (o.no_card && o.backend == "cuda") {
    return Error{Code::invalid_argument, "--vram 0: expected no --backend cuda beside it, as the CPU computes then"};
  }
  const std::string name = o.no_card && o.backend == "auto" ? "cpu" : o.backend;
  TRY_ASSIGN(const models::BackendKind backend, models::backend_from_name(name));
  if (o.vram_bytes > 0 && backend != models::BackendKind::cuda) {
    return Error{Code::invalid_argument, "--vram: expected a CUDA card to compute on, found none in use"};
  }
  TRY_ASSIGN(const int cpu_moe, cpu_moe_from_text(o.cpu_moe));
  if (cpu_moe != 0 && cpu_moe != kFittingMixtures && backend != models::BackendKind::cuda) {
    return Error{Code::invalid_argument, "--cpu-moe: expected a CUDA card to compute on, found none in use"};
  }
  TRY_ASSIGN(const int gpu_layers, gpu_layers_from_text(o.gpu_layers));
  if (gpu_layers != kFittingLayers && backend != models::BackendKind::cuda) {
    return Error{Code::invalid_argument, "--gpu-layers: expected a CUDA card to compute on, found none in use"};
  }
  return backend;
}

bool is_free_to_choose(const ModelOptions& o) {
  return o.backend == "auto" && o.vram_bytes == 0 && o.cpu_moe == "auto" && o.ram_experts == "auto" &&
         o.gpu_layers == "auto";
}

Result<std::unique_ptr<models::Model>> load_model(const ModelOptions& o, LoadProgress progress) {
  TRY_ASSIGN(const models::BackendKind backend, backend_of(o));
  TRY_ASSIGN(LoadOptions options, load_options(o));
  if (progress) options.progress = std::move(progress);
  TRY_ASSIGN(const std::string path, model_path(o.path));
  const std::string folder = options.experts_folder;
  const bool chooses = is_free_to_choose(o) && backend == models::BackendKind::cuda;
  const auto said = std::make_shared<std::string>();
  expect_speed(options, chooses, said);
  TRY_ASSIGN(auto model, chooses ? models::Model::load_where_it_fits(path, std::move(options))
                                 : models::Model::load(path, backend, std::move(options)));
  model->expect(*said);
  TRY(check_drafts(o, *model));
  if (const auto experts = model->executable().expert_traffic()) {
    std::fprintf(stderr,
                 "RAM does not hold all of the model: of %llu experts it has room for %llu (%.2f of %.2f GB), and the "
                 "others are read from %s when they are used.\n",
                 static_cast<unsigned long long>(experts->n_experts), static_cast<unsigned long long>(experts->n_slots),
                 static_cast<double>(experts->ram_bytes) / 1e9, static_cast<double>(experts->all_bytes) / 1e9,
                 folder.c_str());
  }
  return Result<std::unique_ptr<models::Model>>{std::move(model)};
}

std::string placement_text(const models::Model& model) {
  const auto placement = model.executable().placement();
  std::string text = placement ? placement->text : model.card_problem();
  if (!text.empty() && !model.expectation().empty()) text += "; ";
  return text + model.expectation();
}

Status check_drafts(const ModelOptions& o, const models::Model& model) {
  if (o.speculate == speculative::Mode::mtp && !o.drafter.empty()) {
    return Error{Code::invalid_argument, "--speculate mtp: expected no --drafter beside it, which takes its place"};
  }
  if (o.speculate == speculative::Mode::dflash && o.drafter.empty()) {
    return Error{Code::invalid_argument, "--speculate dflash needs --drafter FILE"};
  }
  if (o.speculate != speculative::Mode::mtp || model.has_drafts()) return Ok{};
  const std::string& why = model.draft_problem();
  return Error{Code::invalid_argument,
               "--speculate mtp: expected a model with an MTP block (tensors blk.N.nextn.*), found " +
                   (why.empty() ? "none that this architecture can use" : "one that cannot be run: " + why)};
}

Result<std::string> read_chat_template(const std::string& path) {
  constexpr std::streamsize kMaxBytes = 1 << 20;
  if (path.empty()) return std::string();
  if (const std::string_view named = chat::named_template(path); !named.empty()) return std::string(named);
  if (path.find("{{") != std::string::npos || path.find("{%") != std::string::npos) return path;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return Error{Code::io, "--chat-template " + path + ": expected a file that can be read, Jinja itself, or one of " +
                               chat::template_names()};
  }
  std::string text(kMaxBytes, '\0');
  file.read(text.data(), kMaxBytes);
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.empty() || file.gcount() == kMaxBytes) {
    return Error{Code::invalid_argument, "--chat-template " + path +
                                             ": expected a Jinja template of less than 1 MiB, found " +
                                             (text.empty() ? "nothing" : "more")};
  }
  return text;
}

std::string context_warning(const models::Model& model, int context) {
  if (context <= model.context_length()) return "";
  return "--ctx " + std::to_string(context) + " is more than the " + std::to_string(model.context_length()) +
         " tokens the model was made for: it is used as asked, but answers become poor beyond them";
}

Status load_adapters(const std::vector<std::string>& arguments, models::AdapterLibrary& library) {
  for (const std::string& text : arguments) {
    TRY_ASSIGN(const models::AdapterArgument argument, models::parse_adapter_argument(text));
    TRY(library.load(argument.name, argument.path, argument.scale));
  }
  return Ok{};
}

std::string load_judge_beside(const std::string& model_file, models::AdapterLibrary& library) {
  const std::filesystem::path file = std::filesystem::path(model_file).replace_extension(".prm.gguf");
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return "";
  for (const auto& loaded : library.list()) {
    if (loaded.name == odo::kJudgeAdapter) return "";
  }
  const Status loaded = library.load(odo::kJudgeAdapter, file.string(), 1);
  return loaded ? "" : "the judge beside the model is not used: " + loaded.error().message;
}

std::string human_count(uint64_t n) {
  char text[32];
  const auto value = static_cast<double>(n);
  if (n >= 1'000'000'000) {
    std::snprintf(text, sizeof(text), "%.2f B", value / 1e9);
  } else if (n >= 1'000'000) {
    std::snprintf(text, sizeof(text), "%.1f M", value / 1e6);
  } else if (n >= 1'000) {
    std::snprintf(text, sizeof(text), "%.1f K", value / 1e3);
  } else {
    return std::to_string(n);
  }
  return text;
}

int fail(const Error& error) {
  std::fprintf(stderr, "chimere: %s\n", error.message.c_str());
  return 1;
}

}  // namespace chimere::apps
