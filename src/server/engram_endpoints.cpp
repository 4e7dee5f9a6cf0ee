// engram_endpoints.cpp  /v1/engram: what tables and passages there are; accept and forget below it: what a user's own
// table learns from answers that were good, and what it loses again.
#include <utility>

#include "server/endpoints.h"
#include "server/engram_schema.h"
#include "server/generate_fields.h"
#include "server/json_fields.h"

namespace chimere::server {
namespace {

using orchestrator::ServiceJob;

constexpr size_t kMaxLessonBytes = size_t{256} << 10;
constexpr const char* kDefaultSource = "accepted";

// Waits for the end of a job and says what came of it.
template <class T>
class JobAnswer : public Answer {
 public:
  using Writer = std::function<Json(const T&)>;

  JobAnswer(std::unique_ptr<ServiceJob<T>> job, Writer write, std::string ignored,
            std::unique_ptr<RequestRecord> record)
      : job_(std::move(job)), write_(std::move(write)), ignored_(std::move(ignored)), record_(std::move(record)) {}

  Piece poll() override {
    Piece piece;
    auto result = job_->poll();
    if (!result) return piece;
    piece.head = *result ? json_response(write_(**result)) : failure(result->error());
    if (!ignored_.empty()) piece.head->add_header("X-Chimere-Ignored", ignored_);
    piece.done = true;
    record_->set_status(piece.head->status);
    return piece;
  }

 private:
  static HttpResponse failure(const Error& error) {
    ApiError api = to_api_error(error);
    if (error.code == Code::not_found) api = {404, error.message, "invalid_request_error", "source", "not_found"};
    return error_response(api);
  }

  std::unique_ptr<ServiceJob<T>> job_;
  const Writer write_;
  const std::string ignored_;
  std::unique_ptr<RequestRecord> record_;
};

// Whose table it is about. A table that belongs to nobody would be everybody's.
std::string read_owner(JsonFields& fields, const Call& call) {
  std::string user;
  fields.string("user", user);
  std::string owner = memory_owner(call.request.client, user);
  if (owner.empty()) fields.fail("user", "expected the name of the user whose table learns, found none");
  call.record->set_user(std::move(user));
  return owner;
}

// The text itself, or the answer of a request that this owner made.
void read_lesson(JsonFields& fields, const Services& services, orchestrator::LessonCall& lesson) {
  std::string request_id;
  fields.string("text", lesson.text);
  fields.string("request_id", request_id);
  if (fields.find("text") && fields.find("request_id")) fields.fail("request_id", "expected it or text, found both");
  if (!request_id.empty() && fields.ok()) {
    const std::string* answer = services.monitor.answers.find(request_id, lesson.owner);
    if (!answer) return fields.fail("request_id", "no recent answer of this user has that id");
    lesson.text = *answer;
    lesson.source = request_id;
  }
  if (lesson.text.empty()) fields.fail("text", "expected the accepted text, or its request_id, found none");
  if (lesson.text.size() > kMaxLessonBytes) {
    fields.fail("text", "expected at most " + std::to_string(kMaxLessonBytes) + " bytes, found " +
                            std::to_string(lesson.text.size()));
  }
}

// For the key of the request alone: a user below a key is named in bodies, and this has none.
std::unique_ptr<Answer> list(const Services& services, Call call) {
  const auto write = [](const orchestrator::MemoryList& memories) {
    const auto entry = [](const orchestrator::MemoryList::Table& table) {
      return Json{{"ngrams", table.n_ngrams}, {"tokens", table.n_tokens}};
    };
    Json json{{"object", "engram"}, {"tables", Json::array()}, {"own", nullptr}, {"passages", memories.passages}};
    for (const auto& table : memories.tables) {
      Json named{{"name", table.name}};
      named.update(entry(table));
      json["tables"].push_back(std::move(named));
    }
    if (memories.own) json["own"] = entry(*memories.own);
    return json;
  };
  auto job = services.chat.list_memories(memory_owner(call.request.client, {}), call.wake);
  return std::make_unique<JobAnswer<orchestrator::MemoryList>>(std::move(job), write, std::string(),
                                                               std::move(call.record));
}

std::unique_ptr<Answer> accept(const Services& services, Call call) {
  auto parsed = parse_body(call.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return answer_now(call, error_response(*error));
  JsonFields fields(std::get<Json>(parsed));
  orchestrator::LessonCall lesson;
  lesson.source = kDefaultSource;
  lesson.owner = read_owner(fields, call);
  read_lesson(fields, services, lesson);
  fields.string("source", lesson.source);
  if (lesson.source.empty() || lesson.source.size() > 1000) {
    fields.fail("source", "expected a name of 1 to 1000 bytes, found one of " + std::to_string(lesson.source.size()));
  }
  fields.number("score", lesson.score, 0, 5);
  if (!fields.ok()) return answer_now(call, error_response(fields.error()));
  const auto write = [source = lesson.source, score = lesson.score,
                      threshold = lesson.threshold](const orchestrator::Learned& learned) {
    return Json{{"object", "engram.lesson"}, {"learned", learned.learned}, {"source", source}, {"score", score},
                {"threshold", threshold},    {"tokens", learned.n_tokens}};
  };
  return std::make_unique<JobAnswer<orchestrator::Learned>>(services.chat.learn(std::move(lesson), call.wake), write,
                                                            ignored_header(fields.unknown()), std::move(call.record));
}

std::unique_ptr<Answer> forget(const Services& services, Call call) {
  auto parsed = parse_body(call.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return answer_now(call, error_response(*error));
  JsonFields fields(std::get<Json>(parsed));
  std::string owner = read_owner(fields, call), source = kDefaultSource;
  fields.string("source", source);
  if (!fields.ok()) return answer_now(call, error_response(fields.error()));
  const auto write = [source](const engram::Removed& removed) {
    return Json{{"object", "engram.forgotten"},
                {"source", source},
                {"removed_sources", removed.sources},
                {"removed_ngrams", removed.keys}};
  };
  return std::make_unique<JobAnswer<engram::Removed>>(services.chat.forget(std::move(owner), source, call.wake), write,
                                                      ignored_header(fields.unknown()), std::move(call.record));
}

}  // namespace

void add_engram_endpoints(Router& router, const Services& services) {
  router.add({.method = "GET", .path = "/v1/engram", .handler = [services](Call call) {
                return list(services, std::move(call));
              }});
  router.add({.method = "POST", .path = "/v1/engram/accept", .handler = [services](Call call) {
                return accept(services, std::move(call));
              }});
  router.add({.method = "POST", .path = "/v1/engram/forget", .handler = [services](Call call) {
                return forget(services, std::move(call));
              }});
}

}  // namespace chimere::server
