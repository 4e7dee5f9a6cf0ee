#include "models/model.h"

#include <algorithm>

#include "base/hash.h"
#include "models/config.h"
#include "models/dflash.h"
#include "models/registry.h"
#ifdef CHIMERE_HAS_CUDA
#include "backend/cuda/runtime/device.h"
#endif

namespace chimere::models {

namespace {

#ifdef CHIMERE_HAS_CUDA
Status built_with_cuda() { return Ok{}; }
bool has_card() { return cuda::device_count() > 0 && cuda::probe_device(); }
Result<std::unique_ptr<Executable>> compile_for_card(Program program, const LoadOptions& options) {
  return cuda::compile(std::move(program), options);
}
Result<MemoryPlan> plan_for_card(const Program& program, const LoadOptions& options, int64_t more_bytes) {
  return cuda::plan_memory(program, options, more_bytes);
}
#else
Status built_with_cuda() {
  return Error{Code::unsupported,
               "backend 'cuda': this build has no CUDA; configure it with nvcc and -DCHIMERE_CUDA=ON"};
}
bool has_card() { return false; }
Result<std::unique_ptr<Executable>> compile_for_card(Program, const LoadOptions&) {
  return std::move(built_with_cuda().error());
}
Result<MemoryPlan> plan_for_card(const Program&, const LoadOptions&, int64_t) {
  return std::move(built_with_cuda().error());
}
#endif

Compile compile_for(BackendKind backend) {
  switch (backend) {
    case BackendKind::reference: return reference::compile;
    case BackendKind::cpu: return cpu::compile;
    case BackendKind::cuda: return compile_for_card;
  }
  return cpu::compile;
}

}  // namespace

Result<BackendKind> backend_from_name(std::string_view name) {
  if (name == "auto") return has_card() ? BackendKind::cuda : BackendKind::cpu;
  if (name == "cpu") return BackendKind::cpu;
  if (name == "reference") return BackendKind::reference;
  if (name == "cuda") {
    TRY(built_with_cuda());
    return BackendKind::cuda;
  }
  return Error{Code::invalid_argument,
               "backend: expected auto, cpu, cuda or reference, found '" + std::string(name) + "'"};
}

const char* backend_name(BackendKind backend) {
  switch (backend) {
    case BackendKind::reference: return "reference";
    case BackendKind::cpu: return "cpu";
    case BackendKind::cuda: return "cuda";
  }
  return "cpu";
}

uint64_t fingerprint(const gguf::File& file) {
  uint64_t h = hash64("chimere model fingerprint 1");
  for (const auto& [key, value] : file.metadata().entries()) {
    h = hash64(key, h);
    h = hash_mix(h ^ (value.data.index() << 32) ^ value.array_size());
    if (const auto* s = std::get_if<std::string>(&value.data)) h = hash64(*s, h);
    if (const auto* u = std::get_if<uint64_t>(&value.data)) h = hash_mix(h ^ *u);
    if (const auto* i = std::get_if<int64_t>(&value.data)) h = hash_mix(h ^ static_cast<uint64_t>(*i));
    if (const auto* f = std::get_if<double>(&value.data)) h = hash_mix(h ^ std::bit_cast<uint64_t>(*f));
    if (const auto* b = std::get_if<bool>(&value.data)) h = hash_mix(h ^ (*b ? 1 : 2));
  }
  constexpr uint64_t kSample = 4096;
  for (const TensorView& t : file.tensors()) {
    h = hash64(t.name, h);
    h = hash64(std::as_bytes(std::span(t.ne)), hash_mix(h ^ static_cast<uint64_t>(t.type)));
    // One page from the middle of each tensor: an edited or re-quantised file differs there.
    const uint64_t size = t.size_bytes();
    const uint64_t begin = size > kSample ? (size - kSample) / 2 : 0;
    h = hash64(std::span(t.data + begin, std::min(size, kSample)), h);
  }
  return h;
}

uint64_t cache_key(uint64_t fingerprint, const KvFormat& kv, const ExpertRange& experts, bool drafts,
                   uint64_t drafter) {
  if (drafts) fingerprint = hash_mix(fingerprint ^ hash64("draft pass"));
  if (drafter != 0) fingerprint = hash_mix(fingerprint ^ hash_mix(drafter));
  if (experts.least > 0) {
    const auto bits = [](float x) { return static_cast<uint64_t>(std::bit_cast<uint32_t>(x)); };
    const uint64_t counts = static_cast<uint64_t>(experts.least) << 32 | static_cast<uint64_t>(experts.most);
    fingerprint =
        hash_mix(fingerprint ^ hash_mix(counts) ^ (bits(experts.entropy_low) << 32 | bits(experts.entropy_high)));
  }
  return hash_mix(fingerprint ^ hash_mix(static_cast<uint64_t>(kv.k) | static_cast<uint64_t>(kv.v) << 16 |
                                         static_cast<uint64_t>(kv.rotate) << 32));
}

Result<MemoryPlan> plan_memory(const Program& program, BackendKind backend, const LoadOptions& options,
                               int64_t more_card_bytes) {
  return backend == BackendKind::cuda ? plan_for_card(program, options, more_card_bytes)
                                      : cpu::plan_memory(program, options);
}

Result<std::unique_ptr<Model>> Model::load(const std::string& path, BackendKind backend, LoadOptions options) {
  return load(path, backend, std::move(options), compile_for(backend));
}

Result<std::unique_ptr<Model>> Model::load(const std::string& path, BackendKind backend, LoadOptions options,
                                           Compile compile) {
  std::unique_ptr<Model> model(new Model());
  TRY_ASSIGN(gguf::File file, gguf::File::open(path));
  model->file_.emplace(std::move(file));
  model->file_bytes_ = model->file_->size_bytes();
  model->fingerprint_ = models::fingerprint(*model->file_);
  model->source_ = std::make_unique<FileSource>(*model->file_);
  if (Status s = model->start(backend, std::move(options), compile); !s) {
    s.error().message = path + ": " + s.error().message;
    return std::move(s.error());
  }
  return Result<std::unique_ptr<Model>>{std::move(model)};
}

Result<std::unique_ptr<Model>> Model::load_where_it_fits(const std::string& path, LoadOptions options) {
  return load_where_it_fits(path, std::move(options), compile_for_card);
}

Result<std::unique_ptr<Model>> Model::load_where_it_fits(const std::string& path, LoadOptions options,
                                                         Compile for_card) {
  auto on_card = load(path, BackendKind::cuda, options, for_card);
  if (on_card) return on_card;
  const Error& problem = on_card.error();
  if (problem.code != Code::exhausted && problem.code != Code::unsupported) return on_card;
  TRY_ASSIGN(auto model, load(path, BackendKind::cpu, std::move(options)));
  model->card_problem_ = "all weights in RAM, and the CPU computes: " + problem.message;
  if (problem.code == Code::exhausted) {
    model->card_problem_ +=
        ". A smaller file (chimere quantize), a shorter --ctx, --kv-k q8_0 --kv-v q4_0, or other programs off the card "
        "would help";
  }
  return Result<std::unique_ptr<Model>>{std::move(model)};
}

Result<std::unique_ptr<Model>> Model::load(std::unique_ptr<WeightSource> source, BackendKind backend,
                                           LoadOptions options) {
  std::unique_ptr<Model> model(new Model());
  model->source_ = std::move(source);
  TRY(model->start(backend, std::move(options), compile_for(backend)));
  return Result<std::unique_ptr<Model>>{std::move(model)};
}

Status Model::require_logits() const {
  if (!is_encoder()) return Ok{};
  return Error{Code::unsupported,
               "'" + name_ + "' (" + architecture_ + ") is an encoder: it has embeddings and no logits"};
}

Status Model::start(BackendKind backend, LoadOptions options, Compile compile) {
  backend_ = backend;
  const bool drafts = options.drafts && options.drafter.empty();
  auto built = build_program(*source_, drafts);
  if (!built && drafts) {
    // A draft block that cannot be run takes nothing from the model.
    draft_problem_ = built.error().message;
    built = build_program(*source_);
  }
  if (!built) return std::move(built.error());
  Program program = std::move(*built);
  TRY(options.experts.apply_to(program));
  uint64_t drafter = 0;
  if (!options.drafter.empty()) {
    TRY_ASSIGN(gguf::File file, gguf::File::open(options.drafter));
    drafter_file_.emplace(std::move(file));
    drafter = models::fingerprint(*drafter_file_);
    FileSource source(*drafter_file_);
    auto attached = attach_drafter(std::move(program), source);
    if (!attached) {
      attached.error().message = "drafter " + options.drafter + ": " + attached.error().message;
      return std::move(attached.error());
    }
    program = std::move(*attached);
  }
  TRY_ASSIGN(const Config config, read_config(*source_));
  architecture_ = config.arch;
  context_length_ = config.context_length;
  const gguf::Metadata& m = source_->metadata();
  if (auto name = m.get_string("general.name")) name_ = *name;
  if (!options.matrix_taken) {
    options.matrix_taken = [this](const TensorView& t) {
      source_->taken(t);
      if (drafter_file_) drafter_file_->drop_pages(t);
    };
  }
  options.fingerprint = fingerprint_;
  if (options.context_tokens == 0) options.context_tokens = std::min(kUsualContext, context_length_);
  if (options.before_load) TRY(options.before_load(program, options, backend == BackendKind::cuda));
  TRY_ASSIGN(executable_, compile(std::move(program), options));
  cache_key_ = models::cache_key(fingerprint_, options.kv, options.experts, has_drafts(), drafter);
  if (draft_blocks() && draft_blocks()->n_rows > executable_->max_rows()) {
    return Error{Code::invalid_argument,
                 "drafter " + options.drafter + ": its blocks of " + std::to_string(draft_blocks()->n_rows) +
                     " rows need larger batches than " + std::to_string(executable_->max_rows())};
  }
  return Ok{};
}

}  // namespace chimere::models
