#include "serve_folders.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "model_config.h"
#include "orchestrator/chat_service.h"
#include "reloads.h"
#include "serve_models.h"
#include "serve_run.h"

namespace chimere::apps {
namespace {

// Those of all folders, and the one that was named.
std::vector<server::ModelFile> served_files(const ServeOptions& o) {
  std::vector<server::ModelFile> files;
  for (const std::string& folder : o.model_folders) {
    auto found = server::find_models(server::model_folder(folder));
    if (!found) continue;  // it was there at the start
    files.insert(files.end(), found->begin(), found->end());
  }
  std::error_code error;
  const std::filesystem::path named = o.model.path;
  if (!o.model.path.empty()) {
    files.insert(files.begin(), {named.stem().string(), o.model.path, std::filesystem::file_size(named, error), 0});
  }
  return files;
}

Status add_sections(const std::string& file, const ServeOptions& o, OwnOptionsByName& own) {
  TRY_ASSIGN(const auto sections, read_model_sections(file));
  for (const ModelSection& section : sections) {
    OwnOptions mine{o, {}};
    CLI::App app;
    app.set_help_flag();
    add_own_options(app, mine.options);
    const auto check = [&mine]() -> Status {
      orchestrator::Defaults defaults;
      TRY(set_defaults(mine.options, defaults));
      TRY_ASSIGN(mine.chat_template, read_chat_template(mine.options.chat_template_file));
      return Ok{};
    };
    TRY(check());
    TRY(apply_section(section, file, app, check));
    if (!own.emplace(section.name, std::move(mine)).second) {
      return error_at(file, section.place, section.name + ": another folder's file has options of this name, too");
    }
  }
  return Ok{};
}

// Files come and go, so that a name without one is no mistake; but it may be misspelt.
void warn_of_strangers(const OwnOptionsByName& own, const ServeOptions& o) {
  const auto files = served_files(o);
  for (const auto& entry : own) {
    const std::string& name = entry.first;
    const bool is_there = std::any_of(files.begin(), files.end(), [&](const auto& file) { return file.name == name; });
    if (!is_there) spdlog::warn("there are options for '{}', which no model is called", name);
  }
}

// Beside the weights on a card: the CUDA context, and the batches of a model of any size.
constexpr uint64_t kCardWorkingBytes = uint64_t{1} << 30;

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

Result<OwnOptionsByName> read_own_options(const ServeOptions& o) {
  OwnOptionsByName own;
  if (!o.model_config.empty()) {
    TRY(add_sections(o.model_config, o, own));
    return Result<OwnOptionsByName>{std::move(own)};
  }
  for (const std::string& folder : o.model_folders) {
    const std::string file = server::model_folder(folder) + "/chimere.yaml";
    std::error_code error;
    if (std::filesystem::exists(file, error)) TRY(add_sections(file, o, own));
  }
  return Result<OwnOptionsByName>{std::move(own)};
}

Status serve_folders(ServeOptions& o, const std::string& chat_template) {
  const bool names_one =
      !o.adapters.empty() || !o.odo.prm.empty() || !o.server.tags.empty() || !o.speculate.draft_model.empty();
  const bool names_embedder = !o.embedding_model.empty() && o.embedding_model != "none";
  if (names_embedder || !o.rerank_model.empty() || !o.model.drafter.empty() || names_one) {
    return Error{
        Code::invalid_argument,
        "--models: expected no --embedding-model, --rerank-model, --lora, --tags, --draft-model, --drafter or --prm "
        "beside it: put the "
        "model for embeddings into the folder and ask for it by its name; options of one model are in "
        "chimere.yaml"};
  }
  for (const std::string& folder : o.model_folders) TRY(server::find_models(server::model_folder(folder)));
  server::ShelfLimits limits;
  limits.bytes = static_cast<uint64_t>(o.models_gb * 1e9);
  limits.memory = {o.model.ram_bytes, o.model.vram_bytes};
  limits.count = o.models_max;
  limits.idle_unload = std::chrono::seconds(static_cast<int64_t>(o.idle_unload * 60));
  fit_states(o);
  TRY_ASSIGN(const OwnOptionsByName own, read_own_options(o));
  warn_of_strangers(own, o);
  TRY_ASSIGN(const models::BackendKind backend, backend_of(o.model));
  const bool on_card = backend == models::BackendKind::cuda;
  const auto options_of = [&](const server::ModelFile& file) -> const ServeOptions& {
    const auto mine = own.find(file.name);
    return mine == own.end() ? o : mine->second.options;
  };
  const auto load = [&](const server::ModelFile& file, const server::ModelMemory& share,
                        const server::ModelShelf::Progress& progress) -> Result<server::ModelShelf::Opened> {
    ModelOptions options = o.model;
    options.path = file.path;
    options.vram_bytes = share.vram;
    options.ram_bytes = 0;  // what they share was divided already
    const auto mine = own.find(file.name);
    TRY_ASSIGN(auto service, open_model(options_of(file), options,
                                        mine == own.end() ? chat_template : mine->second.chat_template, progress));
    // On a card it keeps to its share.
    const bool is_there = service->model_info().backend == models::backend_name(models::BackendKind::cuda);
    const server::ModelMemory taken = is_there ? share : server::memory_of(*service, state_bytes(options_of(file)));
    return Result<server::ModelShelf::Opened>{{std::move(service), taken}};
  };
  const auto plan = [&](const server::ModelFile& file) { return planned_memory(options_of(file), file, on_card); };
  server::ModelShelf shelf([&o] { return served_files(o); }, load, limits, plan);
  const std::string first = o.model.path.empty() ? "" : std::filesystem::path(o.model.path).stem().string();
  const auto memory = [&shelf]() -> std::shared_ptr<orchestrator::MemoryService> {
    auto latest = shelf.latest();
    if (!latest) return nullptr;
    const auto held = std::make_shared<server::ModelShelf::Lease>(std::move(*latest));
    return {held, &(*held)->service->memory()};
  };
  TRY_ASSIGN(const auto odo,
             OdoParts::open(o.odo, memory,
                            {nullptr, nullptr, o.server.journal}));  // ends before the shelf: its runs hold models
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
  run_server(*server, o, reloads, nullptr);
  server.reset();
  return Ok{};
}

}  // namespace chimere::apps
