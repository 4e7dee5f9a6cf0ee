// index.cpp  chimere index: documents in collections, which `chimere serve` and `chimere index search` find again.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/platform/private_file.h"
#include "commands.h"
#include "common.h"
#include "data_folder.h"
#include "file_walk.h"
#include "orchestrator/collection_models.h"
#include "progress_bar.h"
#include "retrieval/collections.h"
#include "retrieval/hit_json.h"

namespace chimere::apps {
namespace {

using retrieval::Collections;
using EmbeddingModelPtr = std::unique_ptr<orchestrator::EmbeddingModel>;

constexpr size_t kShownRefusals = 10;
constexpr size_t kShownTextBytes = 300;

struct IndexOptions {
  ModelOptions embed;
  std::string rerank;
  std::string database;
  std::string owner;
  std::string collection = "default";
  bool whole_collection = false;
  std::vector<std::string> paths;
  double interval = 2;  // seconds
  std::string query;
  std::string mode = "hybrid";
  int k = 5;
  bool no_match = false;
  bool json = false;
};

std::atomic<bool> interrupted{false};

void stop_at_interrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = true; };
  // A second one ends the program at once: what is stored by then is whole.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

Result<EmbeddingModelPtr> open_model(ModelOptions options, const std::string& path) {
  options.path = path;
  TRY_ASSIGN(auto model, load_model(options));
  engine::EngineConfig config;
  config.cache.ram_bytes = 0;
  return orchestrator::EmbeddingModel::open(std::move(model), std::move(config));
}

// The collections and the models they use, which go after them.
struct Opened {
  EmbeddingModelPtr embedder, reranker;
  std::unique_ptr<Collections> collections;
};

Result<Opened> open_collections(const IndexOptions& o, bool uses_models) {
  Opened opened;
  std::string path = o.database;
  if (path.empty()) {
    path = default_collections_file();
    if (path.empty()) return Error{Code::invalid_argument, "--db: expected a file, as no data folder is known"};
    TRY(make_private_folders(data_folder()));
  }
  TRY_ASSIGN(opened.collections, Collections::open(path));
  if (!uses_models) return Result<Opened>{std::move(opened)};
  TRY_ASSIGN(auto matcher, open_matcher());
  opened.collections->use(std::move(matcher));
  if (const std::string file = embedder_path(o.embed.path); !file.empty()) {
    TRY_ASSIGN(opened.embedder, open_model(o.embed, file));
    if (opened.embedder->embedder().scores_pairs()) {
      return Error{Code::invalid_argument, "--embed " + file + ": scores pairs; expected a model for embeddings"};
    }
    opened.collections->use(orchestrator::text_embedder(opened.embedder->embedder()));
  }
  if (!o.rerank.empty()) {
    TRY_ASSIGN(opened.reranker, open_model(o.embed, o.rerank));
    if (!opened.reranker->embedder().scores_pairs()) {
      return Error{Code::invalid_argument, "--rerank " + o.rerank + ": expected a model that scores pairs"};
    }
    opened.collections->use(orchestrator::pair_scorer(opened.reranker->embedder()));
  }
  return Result<Opened>{std::move(opened)};
}

// What one pass over the files did.
struct Pass {
  size_t added = 0, changed = 0, same = 0, removed = 0;
  uint64_t chunks = 0;
  std::vector<std::string> refused;
  bool did_something() const { return added + changed + removed > 0; }
};

// The documents that stand for files below these paths and are no longer there.
Status remove_missing(Collections& collections, const IndexOptions& o, const std::vector<WalkedFile>& files,
                      Pass& pass) {
  auto known = collections.documents(o.owner, o.collection);
  if (!known) return known.error().code == Code::not_found ? Status{Ok{}} : Status{known.error()};
  std::set<std::string> present;
  for (const WalkedFile& file : files) present.insert(file.path);
  for (const std::string& path : o.paths) {
    std::error_code error;
    const std::string below = std::filesystem::weakly_canonical(path, error).string() + "/";
    for (const retrieval::DocumentInfo& document : *known) {
      if (!document.name.starts_with(below) || present.count(document.name) > 0) continue;
      TRY(collections.remove_document(o.owner, o.collection, document.name));
      present.insert(document.name);  // named by two paths: removed once
      ++pass.removed;
    }
  }
  return Ok{};
}

using Seen = std::map<std::string, std::pair<int64_t, uint64_t>>;  // time and size by path, in this run

Result<Pass> add_files(Collections& collections, const IndexOptions& o, Seen& seen, bool shows_progress) {
  TRY_ASSIGN(const std::vector<WalkedFile> files, walk_files(o.paths));
  ProgressBar bar("files", 1);
  Pass pass;
  size_t n_done = 0;
  for (const WalkedFile& file : files) {
    if (interrupted) break;
    if (shows_progress) bar(n_done, files.size());
    ++n_done;
    const auto state = std::make_pair(file.modified, file.bytes);
    if (const auto before = seen.find(file.path); before != seen.end() && before->second == state) {
      ++pass.same;
      continue;
    }
    auto content = read_file(file.path, collections.limits().document_bytes);
    if (!content) {
      pass.refused.push_back(content.error().message);
      continue;
    }
    const auto added =
        collections.add({o.owner, o.collection, file.path, *content, file.modified, [] { return interrupted.load(); }});
    if (!added && added.error().code == Code::cancelled) break;
    if (!added && (added.error().code == Code::exhausted || added.error().code == Code::io)) return added.error();
    seen[file.path] = state;
    if (!added) {
      pass.refused.push_back(added.error().message);
      continue;
    }
    if (added->is_new) pass.chunks += added->document.chunks;
    ++(!added->is_new ? pass.same : added->is_replaced ? pass.changed : pass.added);
  }
  if (shows_progress && !files.empty()) bar(n_done, files.size());
  if (!interrupted) TRY(remove_missing(collections, o, files, pass));
  return Result<Pass>{std::move(pass)};
}

void print_pass(const Pass& pass, const std::string& collection) {
  std::printf("%s: %zu added, %zu changed, %zu unchanged, %zu removed; %llu chunks written\n", collection.c_str(),
              pass.added, pass.changed, pass.same, pass.removed, static_cast<unsigned long long>(pass.chunks));
  for (size_t i = 0; i < std::min(pass.refused.size(), kShownRefusals); ++i) {
    std::fprintf(stderr, "not added: %s\n", pass.refused[i].c_str());
  }
  if (pass.refused.size() > kShownRefusals) {
    std::fprintf(stderr, "and %zu more were not added\n", pass.refused.size() - kShownRefusals);
  }
  std::fflush(stdout);
}

Status add(const IndexOptions& o) {
  TRY_ASSIGN(const Opened opened, open_collections(o, true));
  stop_at_interrupt();
  Seen seen;
  TRY_ASSIGN(const Pass pass, add_files(*opened.collections, o, seen, true));
  print_pass(pass, o.collection);
  if (interrupted) return Error{Code::cancelled, "stopped; what was added stays, the same command goes on"};
  const bool nothing = pass.added + pass.changed + pass.same == 0;
  if (nothing && !pass.refused.empty()) return Error{Code::invalid_argument, "no file could be added"};
  return Ok{};
}

Status watch(const IndexOptions& o) {
  TRY_ASSIGN(const Opened opened, open_collections(o, true));
  stop_at_interrupt();
  Seen seen;
  for (bool is_first = true; !interrupted; is_first = false) {
    TRY_ASSIGN(const Pass pass, add_files(*opened.collections, o, seen, is_first));
    if (is_first || pass.did_something() || !pass.refused.empty()) print_pass(pass, o.collection);
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(o.interval);
    while (!interrupted && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  return Ok{};
}

Status list(const IndexOptions& o) {
  TRY_ASSIGN(const Opened opened, open_collections(o, false));
  if (!o.whole_collection) {
    TRY_ASSIGN(const auto all, opened.collections->list(o.owner));
    for (const auto& one : all) {
      std::printf("%-24s %8llu documents %10llu chunks %12llu bytes\n", one.name.c_str(),
                  static_cast<unsigned long long>(one.documents), static_cast<unsigned long long>(one.chunks),
                  static_cast<unsigned long long>(one.bytes));
    }
    return Ok{};
  }
  TRY_ASSIGN(const auto documents, opened.collections->documents(o.owner, o.collection));
  for (const auto& document : documents) {
    std::printf("%-9s %6llu chunks  %s\n", document.kind.c_str(), static_cast<unsigned long long>(document.chunks),
                document.name.c_str());
  }
  return Ok{};
}

Status remove(const IndexOptions& o) {
  TRY_ASSIGN(const Opened opened, open_collections(o, false));
  if (o.paths.empty()) return opened.collections->remove(o.owner, o.collection);
  TRY_ASSIGN(const auto documents, opened.collections->documents(o.owner, o.collection));
  for (const std::string& path : o.paths) {
    std::error_code error;
    const std::string name = std::filesystem::weakly_canonical(path, error).string();
    size_t n_removed = 0;
    for (const auto& document : documents) {
      if (document.name != name && document.name != path && !document.name.starts_with(name + "/")) continue;
      TRY(opened.collections->remove_document(o.owner, o.collection, document.name));
      ++n_removed;
    }
    if (n_removed == 0)
      return Error{Code::not_found, path + ": no document of '" + o.collection + "' comes from there"};
    std::printf("%s: %zu documents removed\n", path.c_str(), n_removed);
  }
  return Ok{};
}

Status search(const IndexOptions& o) {
  TRY_ASSIGN(const Opened opened, open_collections(o, true));
  retrieval::SearchCall call;
  call.owner = o.owner;
  if (o.whole_collection) call.collections = {o.collection};
  call.query = o.query;
  call.k = static_cast<size_t>(o.k);
  call.mode = o.mode == "words"     ? retrieval::SearchMode::words
              : o.mode == "vectors" ? retrieval::SearchMode::vectors
                                    : retrieval::SearchMode::hybrid;
  call.match = !o.no_match;
  retrieval::SearchTrace trace;
  TRY_ASSIGN(const auto hits, opened.collections->search(call, &trace));
  for (const std::string& skipped : trace.skipped) std::fprintf(stderr, "left out: %s\n", skipped.c_str());
  if (o.json) {
    auto json = nlohmann::ordered_json::array();
    for (const retrieval::Hit& hit : hits) json.push_back(retrieval::hit_json(hit));
    std::printf("%s\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    return Ok{};
  }
  for (const retrieval::Hit& hit : hits) {
    std::printf("%.4f  %s%s%s  [words %d, vectors %d]\n", hit.score, hit.document.c_str(),
                hit.place.empty() ? "" : ", ", hit.place.c_str(), hit.word_rank, hit.vector_rank);
    std::string text = hit.text.substr(0, kShownTextBytes);
    for (char& c : text) c = c == '\n' ? ' ' : c;
    std::printf("    %s%s\n", text.c_str(), hit.text.size() > kShownTextBytes ? "..." : "");
  }
  return Ok{};
}

}  // namespace

void add_index(CLI::App& app, Outcome& outcome) {
  auto o = std::make_shared<IndexOptions>();
  CLI::App* index = app.add_subcommand("index", "Documents in collections, found by words and by meaning");
  index->require_subcommand(1);
  const auto verb = [&](const char* name, const char* description, Status (*work)(const IndexOptions&)) {
    CLI::App* command = index->add_subcommand(name, description);
    command->add_option("--db", o->database,
                        "the database; else collections.db in $CHIMERE_HOME or the XDG data folder");
    command
        ->add_option("--owner", o->owner, "name of the key whose collections they are; empty: of a server without keys")
        ->capture_default_str();
    command->add_option("--collection", o->collection, "name of the collection")->capture_default_str();
    command->callback([o, command, work, &outcome] {
      o->whole_collection = command->count("--collection") > 0;
      if (Status s = work(*o); !s) outcome.code = fail(s.error());
    });
    return command;
  };
  const auto with_model = [&](CLI::App* command) {
    command->add_option(
        "--embed", o->embed.path,
        "GGUF file of a model that embeds them, else the encoder in the box, chimere-embed; none: words alone find "
        "them");
    command->add_option("--threads", o->embed.threads, "worker threads; 0: all cores")->check(at_least(0));
  };
  CLI::App* add_command = verb("add", "add files, or all files below folders; again: what changed", add);
  add_command->add_option("paths", o->paths, "files and folders")->required();
  with_model(add_command);
  CLI::App* watch_command = verb("watch", "the same, and go on as files change, until Ctrl-C", watch);
  watch_command->add_option("paths", o->paths, "files and folders")->required();
  watch_command->add_option("--interval", o->interval, "seconds between two looks")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  with_model(watch_command);
  verb("list", "the collections; with --collection its documents", list);
  CLI::App* remove_command = verb("remove", "documents by path; without one the whole collection", remove);
  remove_command->add_option("paths", o->paths, "files and folders as they were added");
  CLI::App* search_command = verb("search", "the chunks that answer a question best", search);
  search_command->add_option("query", o->query, "the question")->required();
  search_command->add_option("-k", o->k, "chunks to show")
      ->check(CLI::Range(1, static_cast<int>(retrieval::kMaxHits)))
      ->capture_default_str();
  search_command->add_option("--mode", o->mode, "words, vectors, hybrid")
      ->check(CLI::IsMember({"words", "vectors", "hybrid"}))
      ->capture_default_str();
  search_command->add_flag("--no-match", o->no_match,
                           "leave the order that words and vectors give, without the matcher");
  search_command->add_option("--rerank", o->rerank, "GGUF file of a cross-encoder that reads the best 32 again");
  search_command->add_flag("--json", o->json, "print one JSON array");
  with_model(search_command);
}

}  // namespace chimere::apps
