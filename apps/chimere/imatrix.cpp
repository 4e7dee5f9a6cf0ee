// imatrix.cpp  chimere imatrix: which columns of a model's matrices matter, from texts it reads.
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/hash.h"
#include "commands.h"
#include "common.h"
#include "quantizer/collect.h"
#include "text_windows.h"

namespace chimere::apps {
namespace {

namespace fs = std::filesystem;

struct ImatrixOptions {
  std::string model;
  std::vector<std::string> texts, merge;
  std::string out;
  int context = 512;
  size_t max_windows = 0;
  int threads = 0;
  bool force = false;
};

// A run that was stopped goes on from its part.
constexpr uint64_t kWindowsBetweenSaves = 16;

Status merge_files(const ImatrixOptions& o) {
  quantizer::Statistics all;
  for (const std::string& path : o.merge) {
    TRY_ASSIGN(const quantizer::Statistics one, quantizer::read_statistics(path));
    if (Status s = all.merge(one); !s) return Error{s.error().code, path + ": " + s.error().message};
  }
  TRY(quantizer::write_statistics(all, o.out));
  std::printf("%s: %zu matrices of %zu files\n", o.out.c_str(), all.matrices.size(), o.merge.size());
  return Ok{};
}

// What a part belongs to: this model, these texts, cut this way.
std::string mark_of(const models::Model& model, const quantizer::Windows& windows) {
  const uint64_t h =
      hash64(std::as_bytes(std::span(windows.tokens)), model.fingerprint() ^ static_cast<uint64_t>(windows.context));
  char text[40];
  std::snprintf(text, sizeof(text), "chimere part %016llx", static_cast<unsigned long long>(h));
  return text;
}

Status collect_texts(const ImatrixOptions& o) {
  quantizer::InputCollector collector;
  LoadOptions load;
  load.exact = true;
  load.drafts = true;
  load.n_threads = o.threads;
  load.observe = collector.observer();
  TRY_ASSIGN(const std::string path, model_path(o.model));
  TRY_ASSIGN(const auto model, models::Model::load(path, models::BackendKind::cpu, std::move(load)));
  TRY(model->require_logits());
  TRY_ASSIGN(const Tokenizer tokenizer, Tokenizer::from_metadata(model->metadata()));
  TRY_ASSIGN(const quantizer::Windows windows, read_windows(o.texts, tokenizer, o.context, o.max_windows));
  const std::string part = o.out + ".part", mark = mark_of(*model, windows);
  quantizer::Statistics& s = collector.statistics;
  std::error_code code;
  if (fs::exists(part, code)) {
    auto before = quantizer::read_statistics(part);
    if (before && before->datasets == std::vector<std::string>{mark}) {
      s = std::move(*before);
      std::fprintf(stderr, "going on behind window %llu\n", static_cast<unsigned long long>(s.n_chunks));
    }
  }
  const auto show = [&](uint64_t done) {
    if (isatty(STDERR_FILENO))
      std::fprintf(stderr, "\r%llu of %zu windows", static_cast<unsigned long long>(done), windows.n_windows());
  };
  for (uint64_t w = s.n_chunks; w < windows.n_windows(); ++w) {
    TRY(quantizer::read_window(*model, windows.window(w)));
    s.n_chunks = w + 1;
    show(w + 1);
    if (s.n_chunks % kWindowsBetweenSaves != 0) continue;
    quantizer::round_to_file(s);
    s.datasets = {mark};
    TRY(quantizer::write_statistics(s, part));
  }
  if (isatty(STDERR_FILENO)) std::fprintf(stderr, "\n");
  s.datasets.clear();
  for (const std::string& text : o.texts) s.datasets.push_back(fs::path(text).filename().string());
  s.chunk_tokens = static_cast<uint64_t>(o.context);
  TRY(quantizer::write_statistics(s, o.out));
  fs::remove(part, code);
  size_t unused = 0;
  for (const auto& [name, m] : s.matrices) {
    for (const double count : m.counts) unused += count == 0;
  }
  std::printf("%s: %zu matrices, %llu windows of %d tokens\n", o.out.c_str(), s.matrices.size(),
              static_cast<unsigned long long>(s.n_chunks), o.context);
  if (unused > 0) std::printf("  %zu experts were never chosen: more text would help\n", unused);
  return Ok{};
}

Status run(const ImatrixOptions& o) {
  if (o.texts.empty() == o.merge.empty()) {
    return Error{Code::invalid_argument, "expected --text with texts to read, or --merge with files to add up"};
  }
  std::error_code code;
  if (fs::exists(o.out, code) && !o.force) return Error{Code::invalid_argument, o.out + " exists; --force replaces it"};
  return o.merge.empty() ? collect_texts(o) : merge_files(o);
}

}  // namespace

void add_imatrix(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<ImatrixOptions>();
  CLI::App* command = app.add_subcommand("imatrix", "Learn from texts which columns of a model's matrices matter");
  command->footer(
      "What a matrix is multiplied with is large in some columns and small in others. An error in a weight costs as "
      "much as\n"
      "its column is large, so `chimere quantize --imatrix` spends its bits there. Use the unquantised model, and "
      "texts\n"
      "like those it will read: a few hundred kilobytes are enough, for mixtures of experts more.\n\n"
      "  chimere imatrix model-bf16.gguf --text articles.txt chats.txt -o model.imatrix\n"
      "  chimere imatrix --merge monday.imatrix tuesday.imatrix -o both.imatrix\n\n"
      "The file is the GGUF form of llama.cpp's imatrix, and its files are read here. A run that was stopped goes on\n"
      "where it was when the same command is given again.");
  command->add_option("model,--model", options->model, "GGUF file; the model in the box when absent");
  command->add_option("--text", options->texts, "UTF-8 text files");
  command->add_option("--merge", options->merge, "files of this command, or of llama.cpp, to add up instead");
  command->add_option("-o,--out", options->out, "file to write")->required();
  command->add_option("--ctx", options->context, "tokens that are read in one go")->capture_default_str();
  command->add_option("--max-windows", options->max_windows, "stop after so many of them; 0: read everything")
      ->capture_default_str();
  command->add_option("-t,--threads", options->threads, "threads to compute with; 0: one per core")
      ->capture_default_str();
  command->add_flag("--force", options->force, "replace an existing file");
  command->callback([options, &outcome] {
    if (Status s = run(*options); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
