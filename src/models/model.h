// model.h  A model loaded and ready to run: its file, its program on a backend, and what identifies it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "backend/memory_plan.h"
#include "base/result.h"
#include "gguf/gguf.h"
#include "models/weight_source.h"

namespace chimere::models {

enum class BackendKind { reference, cpu, cuda };

// cpu, cuda or reference. auto: cuda if the build has it and the machine a card it can use, else cpu. A build without
// CUDA says so.
Result<BackendKind> backend_from_name(std::string_view name);

const char* backend_name(BackendKind backend);

// Identifies a set of weights: a hash of metadata, tensor table and sampled pages, not of all 15 GB.
uint64_t fingerprint(const gguf::File& file);

// Identifies what cached state depends on: the weights, the KV types, how many experts a token uses, and what else pages
// have: a layer of the file's draft pass, or those of a drafter with this fingerprint (0: none).
uint64_t cache_key(uint64_t fingerprint, const KvFormat& kv, const ExpertRange& experts = {}, bool drafts = false,
                   uint64_t drafter = 0);

// A sequence of so many tokens has room beside the model where nobody says how long they will be: a long question and its
// answer.
inline constexpr int kUsualContext = 8192;

using Compile = Result<std::unique_ptr<Executable>> (*)(Program, const LoadOptions&);

// What a program will take on a backend, without loading it. more_card_bytes: as if the card had so much more memory.
Result<MemoryPlan> plan_memory(const Program& program, BackendKind backend, const LoadOptions& options,
                               int64_t more_card_bytes = 0);

class Model {
 public:
  static Result<std::unique_ptr<Model>> load(const std::string& path, BackendKind backend, LoadOptions options);
  // Bound by `compile`, whatever the backend is called: for tests of what stands above a backend.
  static Result<std::unique_ptr<Model>> load(const std::string& path, BackendKind backend, LoadOptions options,
                                             Compile compile);
  // On a card, or where it has no room for the model or no kernel for what is asked of it, on the CPU: card_problem() says why.
  static Result<std::unique_ptr<Model>> load_where_it_fits(const std::string& path, LoadOptions options);
  static Result<std::unique_ptr<Model>> load_where_it_fits(const std::string& path, LoadOptions options,
                                                           Compile for_card);
  // From any source of weights, e.g. shapes alone. The source must outlive the model.
  static Result<std::unique_ptr<Model>> load(std::unique_ptr<WeightSource> source, BackendKind backend,
                                             LoadOptions options);

  Executable& executable() { return *executable_; }
  const Executable& executable() const { return *executable_; }
  const gguf::Metadata& metadata() const { return source_->metadata(); }
  const std::string& name() const { return name_; }
  const std::string& architecture() const { return architecture_; }
  BackendKind backend() const { return backend_; }
  int n_vocab() const { return executable_->program().n_vocab; }
  // It gives hidden states instead of logits, and reads each text as a whole.
  bool is_encoder() const { return !executable_->program().has_logits(); }
  // It has a draft pass of its own (MTP), and was loaded with it.
  bool has_drafts() const { return executable_->program().has_drafts() && !draft_blocks(); }
  // Of the drafter it was loaded with; null: none.
  const DraftBlocks* draft_blocks() const {
    const auto& blocks = executable_->program().draft_blocks;
    return blocks ? &*blocks : nullptr;
  }
  // Why the file's draft pass could not be loaded although that was asked for; empty where there is nothing to say.
  const std::string& draft_problem() const { return draft_problem_; }
  // Why it is not on the card although there is one, and what would help; empty where there is nothing to say.
  const std::string& card_problem() const { return card_problem_; }
  // How fast it is expected to be, in words, where whoever loaded it said so.
  const std::string& expectation() const { return expectation_; }
  void expect(std::string words) { expectation_ = std::move(words); }
  // It is a reranker: a head scores how well two texts match.
  bool scores_pairs() const { return executable_->program().score_head.has_value(); }
  // An error for callers that need logits, if it has none.
  Status require_logits() const;
  int d_model() const { return executable_->program().d_model; }
  int context_length() const { return context_length_; }  // what the model was trained for
  uint64_t fingerprint() const { return fingerprint_; }
  uint64_t cache_key() const { return cache_key_; }
  uint64_t file_bytes() const { return file_bytes_; }

 private:
  Model() = default;
  Status start(BackendKind backend, LoadOptions options, Compile compile);

  std::optional<gguf::File> file_;
  std::unique_ptr<WeightSource> source_;
  std::optional<gguf::File> drafter_file_;
  std::unique_ptr<Executable> executable_;
  std::string name_;
  std::string architecture_;
  std::string draft_problem_;
  std::string card_problem_;
  std::string expectation_;
  BackendKind backend_ = BackendKind::cpu;
  int context_length_ = 0;
  uint64_t fingerprint_ = 0;
  uint64_t cache_key_ = 0;
  uint64_t file_bytes_ = 0;
};

}  // namespace chimere::models
