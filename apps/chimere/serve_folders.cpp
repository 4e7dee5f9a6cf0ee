#include "serve_folders.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "orchestrator/chat_service.h"
#include "orchestrator/collection_models.h"
#include "own_options.h"
#include "reloads.h"
#include "retrieval/collections.h"
#include "serve_models.h"
#include "serve_run.h"

namespace chimere::apps {
namespace {

// Those of all folders, and the one that was named.
std::vector<server::ModelFile> served_files(const ServeOptions& o, const OwnOptionsByName& own) {
  std::vector<server::ModelFile> files;
  for (const std::string& folder : o.model_folders) {
    auto found = server::find_models(server::model_folder(folder));
    if (!found) continue;  // it was there at the start
    files.insert(files.end(), found->begin(), found->end());
  }
  std::error_code error;
  const std::filesystem::path named = o.model.path;
  if (!o.model.path.empty()) {
    files.insert(files.begin(), {named.stem().string(), o.model.path, std::filesystem::file_size(named, error), 0, {}});
  }
  for (server::ModelFile& file : files) {
    if (const auto mine = own.find(file.name); mine != own.end()) file.options = mine->second.shown;
  }
  return files;
}

// Files come and go, so that a name without one is no mistake; but it may be misspelt.
void warn_of_strangers(const OwnOptionsByName& own, const ServeOptions& o) {
  const auto files = served_files(o, own);
  for (const auto& entry : own) {
    const std::string& name = entry.first;
    const bool is_there = std::any_of(files.begin(), files.end(), [&](const auto& file) { return file.name == name; });
    if (!is_there) spdlog::warn("there are options for '{}', which no model is called", name);
  }
}

// Beside the weights on a card: the CUDA context, and the batches of a model of any size.
constexpr uint64_t kCardWorkingBytes = uint64_t{1} << 30;

// Models beside those of the folder, that are always loaded: for the documents of collections and what is asked of them.
struct Companions {
  std::unique_ptr<orchestrator::EmbeddingModel> embedding, reranking;

  orchestrator::Embedder* embedder() const { return embedding ? &embedding->embedder() : nullptr; }
  orchestrator::Embedder* reranker() const { return reranking ? &reranking->embedder() : nullptr; }
};

// Their memory is part of what models may have together.
Result<Companions> open_companions(const ServeOptions& o, server::ModelMemory& limit) {
  Companions beside;
  TRY_ASSIGN(beside.embedding, open_embedder(o));
  TRY_ASSIGN(beside.reranking, open_companion(o, o.rerank_model));
  if (beside.reranking && !beside.reranking->embedder().scores_pairs()) {
    return Error{Code::invalid_argument, "--rerank-model " + o.rerank_model + ": expected a model that scores pairs"};
  }
  const std::string named = o.embedding_model.empty() ? "" : embedder_path(o.embedding_model);
  for (const std::string& file : {named, o.rerank_model}) {
    std::error_code error;
    const uint64_t bytes = file.empty() ? 0 : std::filesystem::file_size(file, error);
    for (const auto& [most, taken] : {std::pair{&limit.ram, bytes}, std::pair{&limit.vram, companion_vram(o, file)}}) {
      if (*most == 0) continue;
      if (taken >= *most)
        return Error{Code::exhausted, file + ": the memory that models may have is not enough for it"};
      *most -= taken;
    }
  }
  if (retrieval::Collections* collections = o.server.collections.get()) {
    const bool scores = beside.embedder() && beside.embedder()->scores_pairs();
    if (beside.embedder() && !scores) collections->use(orchestrator::text_embedder(*beside.embedder()));
    orchestrator::Embedder* reader = beside.reranker() ? beside.reranker() : scores ? beside.embedder() : nullptr;
    if (reader) collections->use(orchestrator::pair_scorer(*reader));
  }
  return Result<Companions>{std::move(beside)};
}

uint64_t state_bytes(const ServeOptions& o) { return static_cast<uint64_t>(o.state_gb * 1e9); }

// What a file will take. On a card it is what the engine may take there: weights in their wide form, states, batches.
server::ModelMemory planned_memory(const ServeOptions& o, const server::ModelFile& file, bool on_card) {
  if (!on_card) return {file.bytes + state_bytes(o), 0};
  const uint64_t wanted = file.bytes + file.bytes / 5 + state_bytes(o) + kCardWorkingBytes;
  const bool fits = o.model.vram_bytes == 0 || wanted <= o.model.vram_bytes;
  const bool keeps_all = o.model.cpu_moe == "0" && o.model.gpu_layers == "all";
  const bool is_fitted = o.model.cpu_moe == "auto" && o.model.gpu_layers == "auto";
  return {keeps_all || (is_fitted && fits) ? 0 : file.bytes, std::min(wanted, o.model.vram_bytes)};
}

}  // namespace

Status serve_folders(ServeOptions& o, const std::string& chat_template) {
  const bool names_one = !o.adapters.empty() || !o.odo.prm.empty() || !o.server.tags.empty() ||
                         !o.speculate.draft_model.empty() || !o.model.drafter.empty();
  if (names_one) {
    return Error{
        Code::invalid_argument,
        "--models: expected no --lora, --tags, --draft-model, --drafter or --prm beside it: options of one model "
        "are in model-options of chimere.yaml"};
  }
  for (const std::string& folder : o.model_folders) TRY(server::find_models(server::model_folder(folder)));
  server::ShelfLimits limits;
  limits.bytes = static_cast<uint64_t>(o.models_gb * 1e9);
  limits.memory = {o.model.ram_bytes, o.model.vram_bytes};
  limits.count = o.models_max;
  limits.idle_unload = std::chrono::seconds(static_cast<int64_t>(o.idle_unload * 60));
  fit_states(o);
  TRY_ASSIGN(const Companions beside, open_companions(o, limits.memory));
  TRY_ASSIGN(auto own_by_name, own_options(o, o.configuration));
  warn_of_strangers(own_by_name, o);
  OwnOptionsBook book(std::move(own_by_name));
  TRY_ASSIGN(const models::BackendKind backend, backend_of(o.model));
  const bool on_card = backend == models::BackendKind::cuda;
  const OwnOptions of_all{o, chat_template, {}};
  const auto options_of = [&](const server::ModelFile& file) -> OwnOptions {
    const auto own = book.get();
    const auto mine = own->find(file.name);
    return mine == own->end() ? of_all : mine->second;
  };
  const auto load = [&](const server::ModelFile& file, const server::ModelMemory& share,
                        const server::ModelShelf::Progress& progress) -> Result<server::ModelShelf::Opened> {
    ModelOptions options = o.model;
    options.path = file.path;
    options.vram_bytes = share.vram;
    options.ram_bytes = 0;  // what they share was divided already
    const OwnOptions mine = options_of(file);
    TRY_ASSIGN(auto service, open_model(mine.options, options, mine.chat_template, progress));
    // On a card it keeps to its share.
    const bool is_there = service->model_info().backend == models::backend_name(models::BackendKind::cuda);
    const server::ModelMemory taken = is_there ? share : server::memory_of(*service, state_bytes(mine.options));
    return Result<server::ModelShelf::Opened>{{std::move(service), taken}};
  };
  const auto plan = [&](const server::ModelFile& file) {
    return planned_memory(options_of(file).options, file, on_card);
  };
  server::ModelShelf shelf([&o, &book] { return served_files(o, *book.get()); }, load, limits, plan);
  const std::string first = o.model.path.empty() ? "" : std::filesystem::path(o.model.path).stem().string();
  const auto memory = [&shelf]() -> std::shared_ptr<orchestrator::MemoryService> {
    auto latest = shelf.latest();
    if (!latest) return nullptr;
    const auto held = std::make_shared<server::ModelShelf::Lease>(std::move(*latest));
    return {held, &(*held)->service->memory()};
  };
  TRY_ASSIGN(const auto odo, OdoParts::open(o.odo, memory,
                                            {o.server.collections.get(), nullptr, o.server.journal, beside.embedder(),
                                             beside.reranker()}));  // ends before the shelf: its runs hold models
  if (odo) o.server.odo = &odo->odo();
  Reloads reloads;
  o.server.http.on_hangup = [&reloads] { reloads.ask(); };
  TRY_ASSIGN(auto server, server::Server::listen(o.server, shelf, first));
  size_t n_files = 0;
  shelf.list([&](const server::ModelShelf::Listed&) { ++n_files; });
  std::printf(
      "\n%zu models are ready on %s; each is loaded when it is first asked for\n\n"
      "Open %s in a browser, or list them: curl %s/v1/models\n\n",
      n_files, server->url().c_str(), server->url().c_str(), server->url().c_str());
  if (const auto odo_url = server->odo_url()) std::printf("odo answers on %s\n\n", odo_url->c_str());
  std::fflush(stdout);
  invite(*server, o);
  const auto take_over = [&o, &book](const ServeOptions&, const Configuration& configuration) -> Status {
    TRY_ASSIGN(auto own, own_options(o, configuration));
    warn_of_strangers(own, o);
    spdlog::info("{} models have options of their own; one that is loaded has them when it is loaded again",
                 own.size());
    book.set(std::move(own));
    return Ok{};
  };
  run_server(*server, o, reloads, {kModelOptions, take_over});
  server.reset();
  return Ok{};
}

}  // namespace chimere::apps
