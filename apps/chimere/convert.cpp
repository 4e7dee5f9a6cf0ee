// convert.cpp  chimere convert: a Hugging Face checkpoint to a GGUF file.
#include <cstdio>
#include <filesystem>
#include <map>

#include "commands.h"
#include "common.h"
#include "convert/convert.h"
#include "convert/families.h"
#include "progress_bar.h"

namespace chimere::apps {
namespace {

struct Options {
  convert::ConvertOptions convert;
  std::string type = "bf16";
  bool force = false;
};

// "model.visual.": what the names have in common, and how many there are.
void print_left_out(const std::vector<std::string>& names) {
  std::map<std::string, int> groups;
  for (const std::string& name : names) {
    const size_t dot = name.find('.'), second = dot == std::string::npos ? dot : name.find('.', dot + 1);
    ++groups[name.substr(0, second)];
  }
  for (const auto& [group, n] : groups) std::printf("  left out: %d tensors of %s\n", n, group.c_str());
}

Status run(Options& o) {
  const std::optional<DType> type = dtype_from_name(o.type);
  const bool known =
      type && (*type == DType::F32 || *type == DType::F16 || *type == DType::BF16 || *type == DType::Q8_0);
  if (!known) return Error{Code::invalid_argument, "--type: expected bf16, f16, f32 or q8_0, found '" + o.type + "'"};
  o.convert.type = *type;
  std::error_code code;
  if (std::filesystem::exists(o.convert.out, code) && !o.force) {
    return Error{Code::invalid_argument, o.convert.out + " exists; --force replaces it"};
  }
  ProgressBar bar;
  TRY_ASSIGN(const convert::ConvertReport report,
             convert::convert(o.convert, [&](uint64_t done, uint64_t total) { return bar(done, total); }));
  std::printf("%s: %s, %lu tensors, %.3f GB\n", o.convert.out.c_str(), report.architecture.c_str(),
              static_cast<unsigned long>(report.n_tensors), static_cast<double>(report.n_bytes) / 1e9);
  for (const std::string& note : report.notes) std::printf("  note: %s\n", note.c_str());
  print_left_out(report.left_out);
  return Ok{};
}

}  // namespace

void add_convert(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("convert", "Make a GGUF file of a model folder from Hugging Face");
  std::string classes;
  for (const convert::Family& family : convert::families()) {
    classes += (classes.empty() ? "" : ", ") + std::string(family.model_class);
  }
  command->footer(
      "The folder is what a model's page offers for download: config.json, model*.safetensors with its index,\n"
      "tokenizer.json, tokenizer_config.json, and chat_template.jinja or generation_config.json where they exist.\n\n"
      "  chimere convert Qwen3-0.6B --out qwen3-0.6b.gguf\n"
      "  chimere convert Qwen3-0.6B --out qwen3-0.6b-q8.gguf --type q8_0\n\n"
      "Weights pass through in rows, so the model may be larger than memory. When a run is interrupted, the same "
      "command\n"
      "goes on where it stopped (FILE.part holds what is done); FILE appears when it is complete.\n\n"
      "Model classes: " +
      classes);
  command->add_option("dir", options->convert.folder, "folder of the checkpoint")->required();
  command->add_option("--out", options->convert.out, "GGUF file to write")->required();
  command
      ->add_option(
          "--type", options->type,
          "type of the matrices: bf16, f16, f32, or q8_0 (half the size of bf16, hardly a loss). Norms, biases "
          "and routers stay f32; MXFP4 experts stay as they are")
      ->capture_default_str();
  command->add_option("--name", options->convert.name, "name of the model in the file; the folder's when absent");
  command->add_flag("--force", options->force, "replace an existing file");
  command->callback([options, &outcome] {
    if (Status s = run(*options); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
