// inspect.cpp  chimere inspect: what is in a file, what it needs, and why it is refused if it is.
#include <algorithm>
#include <cstdio>

#include "commands.h"
#include "common.h"
#include "gguf/summary.h"
#include "models/config.h"
#include "models/registry.h"
#include "tokenizer/tokenizer.h"

namespace chimere::apps {
namespace {

struct InspectOptions {
  std::string path;
  bool tensors = false;
  int context = 4096;
};

std::string human(uint64_t bytes) {
  char text[32];
  if (bytes >= 1'000'000'000) {
    std::snprintf(text, sizeof(text), "%.2f GB", static_cast<double>(bytes) / 1e9);
  } else if (bytes >= 1'000'000) {
    std::snprintf(text, sizeof(text), "%.1f MB", static_cast<double>(bytes) / 1e6);
  } else {
    std::snprintf(text, sizeof(text), "%.1f KB", static_cast<double>(bytes) / 1e3);
  }
  return text;
}

void print_facts(const gguf::Summary& s, const std::string& path) {
  std::printf("%s\n", path.c_str());
  std::printf("  GGUF version %u, %s%s\n", s.version, human(s.file_bytes).c_str(),
              s.n_shards > 1 ? (", " + std::to_string(s.n_shards) + " shards").c_str() : "");
  std::printf("  architecture  %s\n", s.architecture.empty() ? "(none)" : s.architecture.c_str());
  if (!s.model_name.empty()) std::printf("  name          %s\n", s.model_name.c_str());
  if (s.n_tensors == 0) {
    std::printf("  tensors       none: a vocabulary alone, for `chimere tokenize`\n");
  } else {
    std::printf("  tensors       %lu, %s parameters, %.2f bits a weight\n", static_cast<unsigned long>(s.n_tensors),
                human_count(s.n_parameters).c_str(), s.bits_per_weight());
    std::printf("\nSize by type\n");
  }
  for (const gguf::TypeUse& t : s.types) {
    std::printf("  %-8s %6lu tensors %12s %6.1f %%\n", std::string(name(t.type)).c_str(),
                static_cast<unsigned long>(t.n_tensors), human(t.n_bytes).c_str(),
                100.0 * static_cast<double>(t.n_bytes) / static_cast<double>(std::max<uint64_t>(1, s.tensor_bytes)));
  }
  std::printf("\nMetadata\n");
  for (const gguf::MetadataText& m : s.metadata) {
    std::printf("  %-48s %-12s %s\n", m.key.c_str(), m.type.c_str(), m.text.c_str());
  }
}

void print_tensors(const gguf::File& file) {
  std::printf("\nTensors\n");
  for (const TensorView& t : file.tensors()) {
    std::printf("  %-40s %-8s %-26s %12s\n", gguf::printable(t.name, 64).c_str(), std::string(name(t.type)).c_str(),
                to_string(t.ne).c_str(), human(t.size_bytes()).c_str());
  }
}

Status print_needs(const gguf::File& file, int context) {
  models::FileSource source(file);
  TRY_ASSIGN(const Program program, models::build_program(source));
  TRY_ASSIGN(const models::Config config, models::read_config(source));
  std::printf("\nMemory needed with a context of %d tokens\n", context);
  std::printf("  weights            %12s\n", human(file.size_bytes()).c_str());
  const std::pair<const char*, KvFormat> formats[] = {
      {"f16 keys and values", {DType::F16, DType::F16, false}},
      {"q8_0 keys, q4_0 values", {DType::Q8_0, DType::Q4_0, false}},
  };
  for (const auto& [label, format] : formats) {
    const auto layout = StateLayout::create(program.kv_layers, program.recurrent_layers, format);
    if (!layout) continue;
    const uint64_t kv = layout->kv_bytes_per_token() * context;
    std::printf("  KV cache           %12s   %s, %s a token\n", human(kv).c_str(), label,
                human(layout->kv_bytes_per_token()).c_str());
  }
  TRY_ASSIGN(const StateLayout layout, StateLayout::create(program.kv_layers, program.recurrent_layers, {}));
  if (layout.recurrent_floats() > 0) {
    std::printf("  recurrent state    %12s   a sequence, whatever its length\n",
                human(layout.recurrent_floats() * sizeof(float)).c_str());
  }
  std::printf("\n%d layers: %zu attention, %zu recurrent%s; trained context %d tokens\n", config.n_layers,
              program.kv_layers.size(), program.recurrent_layers.size(),
              config.n_mtp_layers ? ", and a multi-token-prediction block after them" : "", config.context_length);
  return Ok{};
}

// Of a file without tensors nothing else can be used.
Status print_vocabulary(const gguf::File& file) {
  auto tokenizer = Tokenizer::from_metadata(file.metadata());
  if (!tokenizer) {
    std::printf("\nRefused: %s\n", tokenizer.error().message.c_str());
    return std::move(tokenizer.error());
  }
  const char* kind = tokenizer->kind() == VocabKind::wordpiece ? "WordPiece"
                     : tokenizer->kind() == VocabKind::bpe     ? "byte-level BPE"
                     : tokenizer->kind() == VocabKind::unigram ? "SentencePiece unigram"
                                                               : "SentencePiece BPE";
  std::printf("\nVocabulary\n  %d tokens, %s\n", tokenizer->n_vocab(), kind);
  return Ok{};
}

Status run(const InspectOptions& o) {
  TRY_ASSIGN(const std::string path, model_path(o.path));
  TRY_ASSIGN(const gguf::File file, gguf::File::open(path));
  const gguf::Summary summary = gguf::summarize(file);
  print_facts(summary, path);
  if (summary.n_tensors == 0) return print_vocabulary(file);
  if (o.tensors) print_tensors(file);
  if (Status s = print_needs(file, o.context); !s) {
    std::printf("\nRefused: %s\n", s.error().message.c_str());
    return std::move(s.error());
  }
  return Ok{};
}

}  // namespace

void add_inspect(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand("inspect", "Show what is in a GGUF file and what it needs to run");
  command->add_option("model,--model", options->path,
                      "GGUF file (the first one of a split set); the model in the box when absent");
  command->add_flag("--tensors", options->tensors, "list every tensor");
  command->add_option("--ctx", options->context, "context length for the memory estimate")->capture_default_str();
  command->callback([options, &outcome] {
    if (Status s = run(*options); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
