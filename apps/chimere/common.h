// common.h  What several sub-commands share: model options, loading with progress, printing errors.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "models/adapter_library.h"
#include "models/model.h"
#include "retrieval/matcher.h"
#include "speculative/mode.h"

namespace chimere::apps {

struct ModelOptions {
  std::string path;
  std::string backend = "auto";
  std::string kv_k = "f16";
  std::string kv_v = "f16";
  bool kv_rotate = false;
  bool exact = false;
  std::string experts;  // "2-6"
  std::vector<float> experts_entropy = {0.3f, 0.7f};
  int threads = 0;
  uint64_t vram_bytes = 0;           // 0: all that is free
  bool no_card = false;              // --vram 0
  std::string cpu_moe = "auto";      // layers, "all", or "auto": as many as it takes
  std::string ram_experts = "auto";  // "cpu", "card" or "auto"
  std::string gpu_layers = "auto";   // layers on the card, "all", or "auto": as many as fit
  std::string routing = "model";     // of benchmarks: "uniform" or "zipf:S"
  uint64_t ram_bytes = 0;            // for weights; 0: what is to be had
  std::string experts_folder;        // of experts that RAM does not hold; empty: in the data folder
  int n_sequences = 1;               // that shall find room on the card
  int context = 0;                   // tokens of each of them; 0: what is usual
  uint64_t state_bytes = 0;          // of all of them, where that is more
  int decode_rows = kDecodeTokens;   // sequences that may decode beside a prompt
  // What guesses will be tried: with some, the file's draft block is loaded, too.
  speculative::Mode speculate = speculative::Mode::off;
  std::string drafter;  // a DFlash drafter's file; empty: none
};

// What `serve` asks of a load, and `plan` of a plan: that many answers at a time, conversations of so many tokens. On a card
// one of them has room beside the weights; the others have what is left, or wait.
void ask_for_answers(ModelOptions& options, int parallel, int context);

// For CLI::Option::check. CLI11's own checks of this kind tell the largest number of the type, in 300 digits.
CLI::Validator at_least(double least);  // "expected 0 or more, found -5"
CLI::Validator above(double limit);

// `positional`: the model is the first argument; otherwise it is `--model`.
void add_model_options(CLI::App& command, ModelOptions& options, bool positional);

// The file to use: `given`, or without one the model in the box: `assets/chimere-nano.gguf` of the clone the program
// was built in, or of `share/chimere/` in a folder above the program, where a package may put it.
Result<std::string> model_path(const std::string& given);

// The file of the model that embeds: `given`; without one `assets/chimere-embed.gguf`, found as the model in the box is.
// Empty for `none`, and where the box has none.
std::string embedder_path(const std::string& given);
// `assets/chimere-matcher.gguf`, found as the model in the box is; null where it is not there.
Result<std::shared_ptr<const retrieval::Matcher>> open_matcher();

// Folder of the tables that come with the program, beside the model in the box; empty when there is none.
std::string shipped_tables();
// The folder of routes that comes with the program; empty when it is not there.
std::string shipped_routes();
// The questions that guard general ability while something is learned; empty when they are not there.
std::string shipped_guard();
std::string shipped_general_text();

// Loads the model, showing a progress line on stderr when it is a terminal and loading takes longer than a second.
// Somebody else may follow it instead.
Result<std::unique_ptr<models::Model>> load_model(const ModelOptions& options, LoadProgress progress = {});
Result<LoadOptions> load_options(const ModelOptions& options);
// The backend the options name, if it can do what they ask for.
Result<models::BackendKind> backend_of(const ModelOptions& options);
// Whether nothing was said of the card, so that a model may be computed by the CPU where the card can not.
bool is_free_to_choose(const ModelOptions& options);
// Where its weights went and why, in words; empty where there is no card.
std::string placement_text(const models::Model& model);
// Refuses guesses of a source that is not there.
Status check_drafts(const ModelOptions& options, const models::Model& model);

// The text of a `--chat-template`: a file, a name of named_templates.h, or Jinja itself; empty when none was given.
Result<std::string> read_chat_template(const std::string& path);

// What to say of a `--ctx` beyond what the model was made for; empty when it is not.
std::string context_warning(const models::Model& model, int context);

// Loads each "NAME=FILE[:SCALE]".
Status load_adapters(const std::vector<std::string>& arguments, models::AdapterLibrary& library);
// The adapter that makes the model its own judge (odo/judge.h), MODEL.prm.gguf beside MODEL.gguf, where there is one and the
// name is free. What keeps it from being loaded; empty: nothing does.
std::string load_judge_beside(const std::string& model_file, models::AdapterLibrary& library);

// "24.1 M", "35.50 B"
std::string human_count(uint64_t n);

// "chimere: message" on stderr; returns the exit code.
int fail(const Error& error);

}  // namespace chimere::apps
