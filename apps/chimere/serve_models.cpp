#include "serve_models.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "cache/cache_folder.h"
#include "data_folder.h"
#include "engram/library.h"
#include "tokenizer/fingerprint.h"

namespace chimere::apps {
namespace {

void warn(const std::string& line) { spdlog::warn("{}", line); }

CacheConfig cache_config(const ServeOptions& o, uint64_t model_bytes) {
  CacheConfig cache;
  cache.ram_bytes = static_cast<uint64_t>(o.cache_gb * 1e9);
  cache.disk.log = warn;
  if (o.no_disk_cache) return cache;
  cache.disk.folder = o.cache_folder.empty() ? default_cache_folder() : o.cache_folder;
  if (o.cache_disk_gb) {
    cache.disk.quota_bytes = static_cast<uint64_t>(*o.cache_disk_gb * 1e9);
  } else if (!cache.disk.folder.empty()) {
    const DiskQuota quota = default_quota(model_bytes, free_bytes_for(cache.disk.folder));
    cache.disk.quota_bytes = quota.all_models;
    cache.disk.model_quota_bytes = quota.one_model;
  }
  return cache;
}

// The tables of owners take part in their answers from now on.
std::shared_ptr<improve::InUse> use_learned(const std::shared_ptr<improve::ArtefactStore>& store,
                                            orchestrator::ChatModel& model) {
  const engram::Vocabulary vocabulary{vocabulary_fingerprint(model.tokenizer),
                                      static_cast<uint32_t>(model.tokenizer.n_vocab())};
  auto in_use = std::make_shared<improve::InUse>(store, vocabulary);
  model.memory.tables->use_learned([in_use](const std::string& owner) -> std::shared_ptr<const engram::NgramSource> {
    const auto served = in_use->of(owner);
    return served ? served->table : nullptr;
  });
  return in_use;
}

// Of a model beside the one that answers.
ModelOptions companion_options(const ServeOptions& o, const std::string& file) {
  ModelOptions options = o.model;
  options.path = file;
  options.cpu_moe = options.gpu_layers = "auto";  // were said of the other model
  options.vram_bytes = companion_vram(o, file);
  return options;
}

engine::EngineConfig companion_config(const ServeOptions& o) {
  engine::EngineConfig config;
  config.max_queued = o.queue;
  config.state_bytes = static_cast<uint64_t>(o.state_gb * 1e9);
  config.log = warn;
  return config;
}

}  // namespace

Result<std::unique_ptr<orchestrator::ChatService>> open_model(const ServeOptions& o, const ModelOptions& options,
                                                              const std::string& chat_template,
                                                              const server::ModelShelf::Progress& progress,
                                                              LearnedParts* learned) {
  engine::EngineConfig config;
  config.context_length = o.context;
  config.max_running = o.parallel;
  o.speculate.apply_to(config);
  config.max_queued = o.queue;
  config.state_bytes = static_cast<uint64_t>(o.state_gb * 1e9);
  config.log = warn;
  config.idle_sleep = std::chrono::seconds(static_cast<int64_t>(o.idle_sleep * 60));
  ModelOptions model_options = options;
  ask_for_answers(model_options, o.parallel, o.context);
  model_options.speculate = o.speculate.mode;
  if (o.says_state_gb) model_options.state_bytes = config.state_bytes;
  TRY_ASSIGN(auto draft_model, load_draft_model(o.speculate.draft_model, model_options));
  TRY_ASSIGN(auto model, load_model(model_options, progress));
  if (!model->draft_problem().empty()) spdlog::warn("the MTP block is not used: {}", model->draft_problem());
  if (const std::string placed = placement_text(*model); !placed.empty()) spdlog::info("{}", placed);
  config.cache = cache_config(o, model->file_bytes());
  if (const std::string warning = context_warning(*model, o.context); !warning.empty()) spdlog::warn("{}", warning);
  TRY_ASSIGN(auto chat_model, orchestrator::ChatModel::from_model(std::move(model), chat_template));
  TRY(add_draft_model(chat_model, std::move(draft_model)));
  chat_model.thinking = o.thinking;
  if (o.thinking_budget >= 0) chat_model.thinking_budget = o.thinking_budget;
  TRY(set_defaults(o, chat_model.defaults));
  chat_model.open_memories(o.engram, shipped_tables(), o.note_limits);
  if (learned && learned->store) learned->in_use = use_learned(learned->store, chat_model);
  TRY(load_adapters(o.adapters, *chat_model.adapters));
  if (!o.odo.is_off && o.odo.prm.empty()) {
    TRY_ASSIGN(const std::string file, model_path(model_options.path));
    if (const std::string problem = load_judge_beside(file, *chat_model.adapters); !problem.empty()) {
      spdlog::warn("{}", problem);
    }
  }
  for (const std::string& warning : chat_model.warnings) spdlog::warn("{}", warning);
  return std::make_unique<orchestrator::ChatService>(std::move(chat_model), std::move(config));
}

void fit_states(ServeOptions& o) {
  for (const uint64_t budget : {o.model.ram_bytes, o.model.vram_bytes}) {
    if (budget > 0 && !o.says_state_gb) o.state_gb = std::min(o.state_gb, static_cast<double>(budget) / 4e9);
  }
}

Result<uint64_t> weights_ram(ServeOptions& o) {
  const auto ram = static_cast<double>(o.model.ram_bytes);
  o.cache_gb = std::min(o.cache_gb, ram / 8e9);
  const double left = ram - (o.state_gb + o.cache_gb) * 1e9;
  if (left > 0) return static_cast<uint64_t>(left);
  return Error{Code::invalid_argument, "--ram: expected more than the states of --state-gb " +
                                           std::to_string(o.state_gb) + " take, found " + std::to_string(ram / 1e9) +
                                           " GB"};
}

uint64_t companion_vram(const ServeOptions& o, const std::string& file) {
  return file.empty() ? 0 : o.model.vram_bytes / 8;
}

Result<std::unique_ptr<orchestrator::EmbeddingModel>> open_companion(const ServeOptions& o, const std::string& file) {
  if (file.empty()) return std::unique_ptr<orchestrator::EmbeddingModel>();
  TRY_ASSIGN(auto model, load_model(companion_options(o, file)));
  engine::EngineConfig config = companion_config(o);
  config.cache.ram_bytes = 0;
  return orchestrator::EmbeddingModel::open(std::move(model), std::move(config));
}

Result<std::unique_ptr<orchestrator::EmbeddingModel>> open_embedder(const ServeOptions& o) {
  const std::string file = embedder_path(o.embedding_model);
  if (!o.embedding_model.empty() || file.empty()) return open_companion(o, file);
  ServeOptions own = o;
  own.model = {};
  own.model.backend = "cpu";
  own.model.threads = o.model.threads;
  return open_companion(own, file);
}

Result<std::unique_ptr<orchestrator::ChatService>> open_prm(const ServeOptions& o) {
  if (o.odo.prm.empty()) return std::unique_ptr<orchestrator::ChatService>();
  TRY_ASSIGN(auto model, load_model(companion_options(o, o.odo.prm)));
  TRY_ASSIGN(auto chat_model, orchestrator::ChatModel::from_model(std::move(model)));
  auto prm = std::make_unique<orchestrator::ChatService>(std::move(chat_model), companion_config(o));
  if (!prm->model_info().chat) {
    return Error{Code::invalid_argument, "--prm " + o.odo.prm + ": expected a model that answers messages"};
  }
  return Result<std::unique_ptr<orchestrator::ChatService>>{std::move(prm)};
}

}  // namespace chimere::apps
