// memory_service.cpp  What takes part in an answer; accepted texts on their way into notes, and out of them again.
#include "orchestrator/memory_service.h"

#include <set>
#include <utility>

#include "engram/library.h"
#include "engram/table.h"
#include "retrieval/passage_library.h"
#include "speculative/engram_guesses.h"

namespace chimere::orchestrator {
namespace {

constexpr size_t kMaxLessonsWaiting = 64;

Error no_tables() {
  return {Code::invalid_argument, "this server has nowhere to learn into; start it with --engram FOLDER"};
}

uint64_t tokens_of(const engram::Table& table) {
  uint64_t n_tokens = 0;
  for (const engram::Source& source : table.sources()) n_tokens += source.n_tokens;
  return n_tokens;
}

uint64_t ngrams_of(const std::shared_ptr<const retrieval::Notebook>& notebook) {
  return notebook ? notebook->ngrams()->count_keys() : 0;
}

bool is_meant(const ForgetCall& call, const retrieval::Note& note) {
  if (call.everything) return true;
  return call.note != 0 ? note.id == call.note : note.source == call.source;
}

// A table of the owner's own, made by `chimere engram add` or by versions that learned into tables.
Status forget_in_table(engram::Library& tables, const ForgetCall& call, Forgotten& forgotten) {
  if (call.note != 0) return Ok{};
  auto removed = call.everything ? tables.remove_of_user(call.owner) : tables.forget_of_user(call.owner, call.source);
  if (!removed) return removed.error().code == Code::not_found ? Status{Ok{}} : Status{removed.error()};
  forgotten.sources += removed->sources;
  forgotten.ngrams += removed->keys;
  return Ok{};
}

}  // namespace

MemoryService::MemoryService(const Tokenizer& tokenizer, MemoryFiles files)
    : tokenizer_(tokenizer),
      files_(std::move(files)),
      passages_(tokenizer, files_.passages),
      lessons_(kMaxLessonsWaiting) {}

retrieval::Encode MemoryService::encoder() const {
  return [this](std::string_view text) { return tokenizer_.encode(text, EncodeMode::plain, false); };
}

std::shared_ptr<const retrieval::Notebook> MemoryService::notebook_of(const std::string& owner) const {
  if (!files_.notes) return nullptr;
  // A file that can not be read was reported at the start; its owner can talk all the same.
  auto notebook = files_.notes->open(owner, encoder());
  return notebook ? *notebook : nullptr;
}

Result<TableSources> MemoryService::sources_for(const MemoryUse& use, std::vector<engram::WeightedTable> more) const {
  std::vector<engram::WeightedTable> tables = std::move(more);
  const bool has_tables = files_.tables && (files_.tables->has_folder() || !files_.tables->names().empty());
  if (!has_tables && !use.tables.empty()) {
    return Error{Code::invalid_argument, "engram.tables: this server has no tables; start it with --engram FOLDER"};
  }
  for (const MemoryUse::Named& named : use.tables) {
    TRY_ASSIGN(std::shared_ptr<const engram::Table> table, files_.tables->table(named.name));
    tables.push_back({std::move(table), named.weight});
  }
  // A table of one's own that is damaged was reported at the start; its owner can talk all the same.
  if (files_.tables) {
    if (auto own = files_.tables->table_of_user(use.owner); own && *own) tables.push_back({*own, 1});
    if (auto learned = files_.tables->learned_of_user(use.owner)) tables.push_back({std::move(learned), 1});
  }
  if (const auto notebook = notebook_of(use.owner)) tables.push_back({notebook->ngrams(), 1});
  if (tables.empty() || use.alpha <= 0) return TableSources{};
  speculative::EngramGuesses::Tables guessing;
  for (const engram::WeightedTable& table : tables) {
    if (table.weight > 0) guessing.push_back(table.table);
  }
  const engram::MixOptions options{use.alpha, use.in_thoughts};
  return TableSources{std::make_shared<engram::TableMemory>(std::move(tables), options),
                      std::make_shared<speculative::EngramGuesses>(std::move(guessing))};
}

std::unique_ptr<ServiceJob<Learned>> MemoryService::learn(LessonCall call, std::function<void()> notify) {
  auto work = [this, call = std::move(call)]() -> Result<Learned> {
    if (!files_.notes) return no_tables();
    if (call.score < call.threshold) return Learned{};
    const retrieval::Encode encode = encoder();
    const auto n_tokens = static_cast<int32_t>(encode(call.text).size());
    auto id = files_.notes->add(call.owner, {0, call.source, engram::today(), call.score, call.text}, encode);
    if (id) return Learned{true, n_tokens, *id, {}};
    if (id.error().code != Code::exhausted) return id.error();
    return Learned{false, n_tokens, 0, id.error().message};
  };
  return lessons_.run<Learned>(std::move(work), std::move(notify));
}

std::unique_ptr<ServiceJob<Forgotten>> MemoryService::forget(ForgetCall call, std::function<void()> notify) {
  auto work = [this, call = std::move(call)]() -> Result<Forgotten> {
    if (!files_.notes) return no_tables();
    Forgotten forgotten;
    std::set<std::string> sources;
    const auto picks = [&](const retrieval::Note& note) {
      if (!is_meant(call, note)) return false;
      sources.insert(note.source);
      return true;
    };
    const uint64_t before = ngrams_of(notebook_of(call.owner));
    TRY_ASSIGN(forgotten.notes, files_.notes->forget(call.owner, picks));
    if (forgotten.notes > 0) forgotten.ngrams = before - ngrams_of(notebook_of(call.owner));
    forgotten.sources = sources.size();
    TRY(forget_in_table(*files_.tables, call, forgotten));
    if (forgotten.notes > 0 || forgotten.sources > 0) return forgotten;
    if (call.everything) return Error{Code::not_found, "user: has taught nothing"};
    if (call.note != 0) {
      return Error{Code::not_found, "note: this user has none with the id " + std::to_string(call.note)};
    }
    return Error{Code::not_found, "source: this user taught nothing under '" + call.source.substr(0, 64) + "'"};
  };
  return lessons_.run<Forgotten>(std::move(work), std::move(notify));
}

std::unique_ptr<ServiceJob<std::vector<retrieval::Note>>> MemoryService::list_notes(std::string owner,
                                                                                    std::function<void()> notify) {
  auto work = [this, owner = std::move(owner)]() -> Result<std::vector<retrieval::Note>> {
    if (!files_.notes) return no_tables();
    return files_.notes->list(owner);
  };
  return lessons_.run<std::vector<retrieval::Note>>(std::move(work), std::move(notify));
}

std::unique_ptr<ServiceJob<std::vector<MemoryEntry>>> MemoryService::query(MemoryQuery query,
                                                                           std::function<void()> notify) {
  auto work = [this, query = std::move(query)] { return query_memory(files_, tokenizer_, query); };
  return lessons_.run<std::vector<MemoryEntry>>(std::move(work), std::move(notify));
}

std::optional<retrieval::NoteUsage> MemoryService::usage() const {
  if (!files_.notes) return std::nullopt;
  return files_.notes->known_usage();
}

std::unique_ptr<ServiceJob<MemoryList>> MemoryService::list(std::string owner, std::function<void()> notify) {
  auto work = [this, owner = std::move(owner)]() -> Result<MemoryList> {
    MemoryList list;
    if (!files_.tables) return Result<MemoryList>{std::move(list)};
    for (const std::string& name : files_.tables->names()) {
      if (auto table = files_.tables->table(name)) {
        list.tables.push_back({name, (*table)->header().n_keys, tokens_of(**table)});
      }
    }
    if (auto own = files_.tables->table_of_user(owner); own && *own) {
      list.own = {"", (*own)->header().n_keys, tokens_of(**own)};
    }
    if (const auto notebook = notebook_of(owner)) {
      if (!list.own) list.own = MemoryList::Table{"", 0, 0};
      list.own->n_ngrams += ngrams_of(notebook);
      list.own->n_tokens += notebook->ngrams()->n_tokens();
      list.n_notes = notebook->size();
    }
    if (files_.passages) list.passages = files_.passages->names(owner);
    if (files_.notes) {
      list.used = files_.notes->usages(owner);
      list.limits = files_.notes->limits();
    }
    return Result<MemoryList>{std::move(list)};
  };
  return lessons_.run<MemoryList>(std::move(work), std::move(notify));
}

}  // namespace chimere::orchestrator
