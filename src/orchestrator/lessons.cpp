// lessons.cpp  Accepted answers on their way into their owner's notes, and out of them again; what memory there is. On
// the thread of the lessons.
#include <set>
#include <utility>

#include "engram/table.h"
#include "orchestrator/chat_service.h"
#include "retrieval/note_library.h"
#include "retrieval/passage_library.h"

namespace chimere::orchestrator {
namespace {

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

std::unique_ptr<ServiceJob<Learned>> ChatService::learn(LessonCall call, std::function<void()> notify) {
  auto work = [this, call = std::move(call)]() -> Result<Learned> {
    if (!model_.notes) return no_tables();
    if (call.score < call.threshold) return Learned{};
    const retrieval::Encode encode = model_.encoder();
    const auto n_tokens = static_cast<int32_t>(encode(call.text).size());
    auto id = model_.notes->add(call.owner, {0, call.source, engram::today(), call.score, call.text}, encode);
    if (id) return Learned{true, n_tokens, *id, {}};
    if (id.error().code != Code::exhausted) return id.error();
    return Learned{false, n_tokens, 0, id.error().message};
  };
  return run_job<Learned>(*lessons_, std::move(work), std::move(notify));
}

std::unique_ptr<ServiceJob<Forgotten>> ChatService::forget(ForgetCall call, std::function<void()> notify) {
  auto work = [this, call = std::move(call)]() -> Result<Forgotten> {
    if (!model_.notes) return no_tables();
    Forgotten forgotten;
    std::set<std::string> sources;
    const auto picks = [&](const retrieval::Note& note) {
      if (!is_meant(call, note)) return false;
      sources.insert(note.source);
      return true;
    };
    const uint64_t before = ngrams_of(model_.notebook_of(call.owner));
    TRY_ASSIGN(forgotten.notes, model_.notes->forget(call.owner, picks));
    if (forgotten.notes > 0) forgotten.ngrams = before - ngrams_of(model_.notebook_of(call.owner));
    forgotten.sources = sources.size();
    TRY(forget_in_table(*model_.memories, call, forgotten));
    if (forgotten.notes > 0 || forgotten.sources > 0) return forgotten;
    if (call.everything) return Error{Code::not_found, "user: has taught nothing"};
    if (call.note != 0) {
      return Error{Code::not_found, "note: this user has none with the id " + std::to_string(call.note)};
    }
    return Error{Code::not_found, "source: this user taught nothing under '" + call.source.substr(0, 64) + "'"};
  };
  return run_job<Forgotten>(*lessons_, std::move(work), std::move(notify));
}

std::unique_ptr<ServiceJob<std::vector<retrieval::Note>>> ChatService::list_notes(std::string owner,
                                                                                  std::function<void()> notify) {
  auto work = [this, owner = std::move(owner)]() -> Result<std::vector<retrieval::Note>> {
    if (!model_.notes) return no_tables();
    return model_.notes->list(owner);
  };
  return run_job<std::vector<retrieval::Note>>(*lessons_, std::move(work), std::move(notify));
}

std::optional<retrieval::NoteUsage> ChatService::learned_usage() const {
  if (!model_.notes) return std::nullopt;
  return model_.notes->known_usage();
}

std::unique_ptr<ServiceJob<MemoryList>> ChatService::list_memories(std::string owner, std::function<void()> notify) {
  auto work = [this, owner = std::move(owner)]() -> Result<MemoryList> {
    MemoryList list;
    if (!model_.memories) return Result<MemoryList>{std::move(list)};
    for (const std::string& name : model_.memories->names()) {
      if (auto table = model_.memories->table(name)) {
        list.tables.push_back({name, (*table)->header().n_keys, tokens_of(**table)});
      }
    }
    if (auto own = model_.memories->table_of_user(owner); own && *own) {
      list.own = {"", (*own)->header().n_keys, tokens_of(**own)};
    }
    if (const auto notebook = model_.notebook_of(owner)) {
      if (!list.own) list.own = MemoryList::Table{"", 0, 0};
      list.own->n_ngrams += ngrams_of(notebook);
      list.own->n_tokens += notebook->ngrams()->n_tokens();
      list.n_notes = notebook->size();
    }
    if (model_.passages) list.passages = model_.passages->names(owner);
    if (model_.notes) {
      list.used = model_.notes->usages(owner);
      list.limits = model_.notes->limits();
    }
    return Result<MemoryList>{std::move(list)};
  };
  return run_job<MemoryList>(*lessons_, std::move(work), std::move(notify));
}

}  // namespace chimere::orchestrator
