// lessons.cpp  Accepted answers on their way into their user's own table, and out of it again.
#include <utility>

#include "engram/edit.h"
#include "orchestrator/chat_service.h"

namespace chimere::orchestrator {
namespace {

Error no_tables() {
  return {Code::invalid_argument, "this server has no tables to learn into; start it with --engram FOLDER"};
}

}  // namespace

std::unique_ptr<ServiceJob<Learned>> ChatService::learn(LessonCall call, std::function<void()> notify) {
  auto work = [this, call = std::move(call)]() -> Result<Learned> {
    if (!model_.memories) return no_tables();
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
    if (!model_.memories) return no_tables();
    return model_.memories->forget_of_user(owner, source);
  };
  return run_job<engram::Removed>(std::move(work), std::move(notify));
}

}  // namespace chimere::orchestrator
