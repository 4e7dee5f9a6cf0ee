// learning_endpoints.cpp  /v1/feedback: what people say of answers. /v1/learning: who may be learned from, and what is
// kept of whom; all of it can be seen and erased by its owner.
#include <charconv>
#include <utility>

#include "server/endpoints.h"
#include "server/http/json.h"
#include "server/job_answer.h"
#include "server/learning/learning_json.h"
#include "server/protocols/shared/engram_field.h"
#include "server/protocols/shared/generate_fields.h"
#include "server/protocols/shared/json_fields.h"
#include "store/journal.h"

namespace chimere::server {
namespace {

using store::Feedback;
using store::FeedbackKind;
using store::Journal;

constexpr int kMaxListed = 1'000, kDefaultListed = 50;

ApiError learning_failure(const Error& error) {
  if (error.code == Code::not_found) return {404, error.message, "invalid_request_error", "request_id", "not_found"};
  // Where it is and who we are there is for the log.
  if (error.code == Code::io) {
    return {503, "the journal can not be read and written now", "server_error", "", "journal_away"};
  }
  return to_api_error(error);
}

ApiError learning_is_off() {
  return {403, "this server keeps no answers to learn from: it was started with --learn off", "invalid_request_error",
          "", "learning_off"};
}

struct LearningContext {
  std::shared_ptr<Journal> journal;  // null: learning is off
  std::shared_ptr<Workers> workers;

  // On a worker, since it waits for the disk.
  std::unique_ptr<Answer> answer(Call& call, std::function<Result<Json>(Journal&)> work,
                                 std::string ignored = {}) const {
    auto job = workers->run<Json>([journal = journal, work = std::move(work)] { return work(*journal); }, call.wake);
    return std::make_unique<JobAnswer<Json>>(std::move(job), std::move(call.record), json_response, learning_failure,
                                             std::move(ignored));
  }
};

// Whose answers it is about: of its key, and of the user it names behind '?'.
std::string owner_behind(const Call& call) {
  std::string user;
  for (auto& [name, value] : query_fields(call.request.query)) {
    if (name == "user") user = std::move(value);
  }
  std::string owner = memory_owner(call.request.client, user);
  call.record->set_user(std::move(user));
  return owner;
}

std::string owner_in(JsonFields& fields, const Call& call) {
  std::string user;
  fields.string("user", user);
  std::string owner = memory_owner(call.request.client, user);
  call.record->set_user(std::move(user));
  return owner;
}

Json state_json(const Journal& journal, const std::string& owner, const store::JournalState& state) {
  Json json{{"object", "learning"},
            {"mode", journal.consent() == Journal::Consent::given ? "on" : "ask"},
            {"agreed", nullptr},
            {"keeps", journal.keeps(owner)},
            {"answers", state.answers},
            {"feedback", state.feedback},
            {"bytes", state.bytes},
            {"oldest", nullptr},
            {"limits", {{"bytes", journal.limits().owner_bytes}, {"days", journal.limits().days}}}};
  if (state.agreed) json["agreed"] = *state.agreed;
  if (state.answers > 0) json["oldest"] = state.oldest;
  return json;
}

std::unique_ptr<Answer> show_state(const LearningContext& context, Call call) {
  if (!context.journal) {
    return answer_now(call, json_response(Json{{"object", "learning"},
                                               {"mode", "off"},
                                               {"agreed", nullptr},
                                               {"keeps", false},
                                               {"answers", 0},
                                               {"feedback", 0}}));
  }
  return context.answer(call, [owner = owner_behind(call)](Journal& journal) -> Result<Json> {
    TRY_ASSIGN(const store::JournalState state, journal.state(owner));
    return state_json(journal, owner, state);
  });
}

std::unique_ptr<Answer> set_agreement(const LearningContext& context, Call call) {
  auto body = parse_body(call.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&body)) return answer_now(call, error_response(*error));
  JsonFields fields(std::get<OwnedJson>(body));
  bool agreed = false;
  fields.boolean("agreed", agreed);
  if (!fields.find("agreed")) fields.fail("agreed", "expected true or false, found nothing");
  const std::string owner = owner_in(fields, call);
  if (!fields.ok()) return answer_now(call, error_response(fields.error()));
  const auto work = [owner, agreed](Journal& journal) -> Result<Json> {
    TRY(journal.agree(owner, agreed));
    TRY_ASSIGN(const store::JournalState state, journal.state(owner));
    return state_json(journal, owner, state);
  };
  return context.answer(call, work, ignored_header(fields.unknown()));
}

Json erased_json(uint64_t n) { return {{"object", "learning.erased"}, {"answers", n}}; }

std::unique_ptr<Answer> erase_all(const LearningContext& context, Call call) {
  return context.answer(call, [owner = owner_behind(call)](Journal& journal) -> Result<Json> {
    TRY_ASSIGN(const uint64_t n, journal.erase(owner));
    return erased_json(n);
  });
}

std::unique_ptr<Answer> erase_conversation(const LearningContext& context, Call call) {
  return context.answer(call, [owner = owner_behind(call), id = call.parameter](Journal& journal) -> Result<Json> {
    TRY_ASSIGN(const uint64_t n, journal.erase_conversation(owner, id));
    if (n == 0) return Error{Code::not_found, "no answer of a conversation '" + id + "' is kept for you"};
    return erased_json(n);
  });
}

Error no_such_answer(const std::string& id) { return {Code::not_found, "no answer '" + id + "' is kept for you"}; }

std::unique_ptr<Answer> one_answer(const LearningContext& context, Call call) {
  const bool erases = call.request.method == "DELETE";
  const auto work = [owner = owner_behind(call), id = call.parameter, erases](Journal& journal) -> Result<Json> {
    if (erases) {
      TRY_ASSIGN(const uint64_t n, journal.erase_answer(owner, id));
      if (n == 0) return no_such_answer(id);
      return erased_json(n);
    }
    TRY_ASSIGN(const auto kept, journal.find(owner, id));
    if (!kept) return no_such_answer(id);
    return kept_json(*kept);
  };
  return context.answer(call, work);
}

// ?limit=50&before=ID. `false`: a field is no number in its range.
bool read_page(const Call& call, int64_t& limit, int64_t& before) {
  for (const auto& [name, value] : query_fields(call.request.query)) {
    if (name != "limit" && name != "before") continue;
    int64_t& out = name == "limit" ? limit : before;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), out);
    if (read.ec != std::errc() || read.ptr != value.data() + value.size()) return false;
  }
  return limit >= 1 && limit <= kMaxListed && before >= 0;
}

std::unique_ptr<Answer> list_answers(const LearningContext& context, Call call) {
  int64_t limit = kDefaultListed, before = 0;
  if (!read_page(call, limit, before)) {
    return answer_now(call, error_response({400,
                                            "limit, before: expected limit=1 to " + std::to_string(kMaxListed) +
                                                " and before=ID, found '" + call.request.query + "'",
                                            "invalid_request_error", "limit", ""}));
  }
  const auto work = [owner = owner_behind(call), limit, before](Journal& journal) -> Result<Json> {
    // One more than was asked for tells whether there are more.
    TRY_ASSIGN(auto all, journal.list(owner, before, static_cast<int>(limit) + 1));
    const bool has_more = all.size() > static_cast<size_t>(limit);
    if (has_more) all.pop_back();
    Json json{{"object", "list"}, {"data", Json::array()}, {"has_more", has_more}};
    for (const store::KeptAnswer& kept : all) json["data"].push_back(kept_json(kept));
    return json;
  };
  return context.answer(call, work);
}

constexpr std::pair<const char*, FeedbackKind> kSigns[] = {
    {"copied", FeedbackKind::copied}, {"regenerated", FeedbackKind::regenerated}, {"edited", FeedbackKind::edited}};

void read_thumb(JsonFields& fields, Feedback& feedback) {
  std::string thumb;
  fields.string("thumb", thumb);
  if (thumb == "up") {
    feedback.kind = FeedbackKind::thumb_up;
  } else if (thumb == "down") {
    feedback.kind = FeedbackKind::thumb_down;
  } else if (thumb == "none") {
    feedback.kind = FeedbackKind::no_thumb;
  } else {
    fields.fail("thumb", "expected up, down or none, found '" + thumb + "'");
  }
}

void read_sign(JsonFields& fields, Feedback& feedback) {
  std::string sign;
  fields.string("sign", sign);
  for (const auto& [name, kind] : kSigns) {
    if (sign == name) {
      feedback.kind = kind;
      return;
    }
  }
  fields.fail("sign", "expected copied, regenerated or edited, found '" + sign + "'");
}

// Exactly one of thumb, rating, correction and sign.
Feedback read_feedback(JsonFields& fields, const store::JournalLimits& limits) {
  Feedback feedback;
  int ways = 0;
  if (fields.find("thumb") && ++ways) read_thumb(fields, feedback);
  if (fields.find("sign") && ++ways) read_sign(fields, feedback);
  if (fields.find("rating") && ++ways) {
    feedback.kind = FeedbackKind::rating;
    fields.integer("rating", feedback.rating, 1, 5);
  }
  if (fields.find("correction") && ++ways) {
    feedback.kind = FeedbackKind::correction;
    fields.string("correction", feedback.text);
    if (feedback.text.empty() || feedback.text.size() > limits.text_bytes) {
      fields.fail("correction", "expected 1 to " + std::to_string(limits.text_bytes) + " bytes, found " +
                                    std::to_string(feedback.text.size()));
    }
  }
  if (ways != 1) {
    fields.fail("thumb", "expected one of thumb, rating, correction and sign, found " + std::to_string(ways));
  }
  return feedback;
}

std::unique_ptr<Answer> give_feedback(const LearningContext& context, Call call) {
  auto body = parse_body(call.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&body)) return answer_now(call, error_response(*error));
  JsonFields fields(std::get<OwnedJson>(body));
  std::string id;
  fields.string("request_id", id);
  if (id.empty()) fields.string("id", id);
  if (id.empty()) fields.fail("request_id", "expected the X-Request-Id of the answer, or id, that of its body");
  const Feedback feedback = read_feedback(fields, context.journal->limits());
  const std::string owner = owner_in(fields, call);
  if (!fields.ok()) return answer_now(call, error_response(fields.error()));
  if (!context.journal->keeps(owner)) {
    return answer_now(call, error_response({409,
                                            "learning from your answers has not been agreed to: PUT /v1/learning "
                                            "{\"agreed\": true} keeps them from then on",
                                            "invalid_request_error", "", "not_agreed"}));
  }
  const auto work = [owner, id, feedback](Journal& journal) -> Result<Json> {
    TRY(journal.give(owner, id, feedback));
    TRY_ASSIGN(const auto kept, journal.find(owner, id));
    Json json{{"object", "feedback"}, {"request_id", kept ? kept->request_id : id}, {"rating", nullptr}};
    if (kept && kept->rating() > 0) json["rating"] = kept->rating();
    return json;
  };
  return context.answer(call, work, ignored_header(fields.unknown()));
}

}  // namespace

std::shared_ptr<Workers> learning_workers(const std::shared_ptr<Journal>& journal, std::shared_ptr<Workers> workers) {
  return journal && journal->is_shared() ? std::make_shared<Workers>() : std::move(workers);
}

void add_learning_endpoints(Router& router, std::shared_ptr<Journal> journal, std::shared_ptr<Workers> workers) {
  const LearningContext context{std::move(journal), std::move(workers)};
  using Handler = std::unique_ptr<Answer> (*)(const LearningContext&, Call);
  const auto where_on = [context](Handler handler) -> RouteHandler {
    return [context, handler](Call call) {
      if (!context.journal) return answer_now(call, error_response(learning_is_off()));
      return handler(context, std::move(call));
    };
  };
  router.add({.method = "GET", .path = "/v1/learning", .handler = [context](Call call) {
                return show_state(context, std::move(call));
              }});
  router.add({.method = "PUT", .path = "/v1/learning", .handler = where_on(set_agreement)});
  router.add({.method = "DELETE", .path = "/v1/learning", .handler = where_on(erase_all)});
  router.add({.method = "GET", .path = "/v1/learning/answers", .handler = where_on(list_answers)});
  router.add({.method = "GET", .path = "/v1/learning/answers/{id}", .handler = where_on(one_answer)});
  router.add({.method = "DELETE", .path = "/v1/learning/answers/{id}", .handler = where_on(one_answer)});
  router.add({.method = "DELETE", .path = "/v1/learning/conversations/{id}", .handler = where_on(erase_conversation)});
  router.add({.method = "POST", .path = "/v1/feedback", .handler = where_on(give_feedback)});
}

}  // namespace chimere::server
