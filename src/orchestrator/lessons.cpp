// lessons.cpp  Accepted answers on their way into their user's own table, and out of it again; what memory there is.
#include <utility>

#include "engram/edit.h"
#include "orchestrator/chat_service.h"
#include "retrieval/passage_library.h"

namespace chimere::orchestrator {
namespace {

Error no_tables() {
  return {Code::invalid_argument, "this server has no tables to learn into; start it with --engram FOLDER"};
}

}  // namespace

std::unique_ptr<ServiceJob<Learned>> ChatService::learn(LessonCall call, std::function<void()> notify) {
  auto work = [this, call = std::move(call)]() -> Result<Learned> {
    if (!model_.memories || !model_.memories->has_folder()) return no_tables();
    if (call.score < call.threshold) return Learned{};
    engram::Lesson lesson;
    lesson.source.id = call.source;
    lesson.source.day = engram::today();
    lesson.source.score = call.score;
    lesson.texts.push_back(model_.tokenizer.encode(call.text, EncodeMode::plain, false));
    const auto n_tokens = static_cast<int32_t>(lesson.texts.front().size());
    TRY(model_.memories->teach_user(call.owner, lesson, call.threshold));
    return Learned{true, n_tokens};
  };
  return run_job<Learned>(std::move(work), std::move(notify));
}

std::unique_ptr<ServiceJob<engram::Removed>> ChatService::forget(std::string owner, std::string source,
                                                                 std::function<void()> notify) {
  auto work = [this, owner = std::move(owner), source = std::move(source)]() -> Result<engram::Removed> {
    if (!model_.memories || !model_.memories->has_folder()) return no_tables();
    return model_.memories->forget_of_user(owner, source);
  };
  return run_job<engram::Removed>(std::move(work), std::move(notify));
}

std::unique_ptr<ServiceJob<MemoryList>> ChatService::list_memories(std::string owner, std::function<void()> notify) {
  auto work = [this, owner = std::move(owner)]() -> Result<MemoryList> {
    MemoryList list;
    const auto add = [&](const std::string& name, const engram::Table& table) {
      uint64_t n_tokens = 0;
      for (const engram::Source& source : table.sources()) n_tokens += source.n_tokens;
      list.tables.push_back({name, table.header().n_keys, n_tokens});
    };
    if (!model_.memories) return Result<MemoryList>{std::move(list)};
    for (const std::string& name : model_.memories->names()) {
      if (auto table = model_.memories->table(name)) add(name, **table);
    }
    if (auto own = model_.memories->table_of_user(owner); own && *own) {
      add("", **own);
      list.own = std::move(list.tables.back());
      list.tables.pop_back();
    }
    if (model_.passages) list.passages = model_.passages->names(owner);
    return Result<MemoryList>{std::move(list)};
  };
  return run_job<MemoryList>(std::move(work), std::move(notify));
}

}  // namespace chimere::orchestrator
