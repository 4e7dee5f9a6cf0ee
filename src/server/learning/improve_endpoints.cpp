// improve_endpoints.cpp  /v1/improve: what was tried for an owner, what is in use, and how it is undone. Each sees and moves
// only their own.
#include <ctime>
#include <utility>

#include "improve/forget.h"
#include "improve/job.h"
#include "improve/report.h"
#include "server/endpoints.h"
#include "server/http/json.h"
#include "server/job_answer.h"
#include "server/learning/improve_desk.h"
#include "server/protocols/shared/engram_field.h"
#include "server/protocols/shared/generate_fields.h"
#include "server/protocols/shared/json_fields.h"

namespace chimere::server {
namespace {

using improve::ArtefactStore;

ApiError improve_failure(const Error& error) {
  if (error.code == Code::not_found) return {404, error.message, "invalid_request_error", "run", "not_found"};
  if (error.code == Code::exhausted) return {409, error.message, "invalid_request_error", "", "busy"};
  return to_api_error(error);
}

ApiError improve_is_off() {
  return {
      403,
      "this server learns nothing: it was started with --learn off, with --no-improve, without a data folder or for "
      "several models",
      "invalid_request_error", "", "learning_off"};
}

struct ImproveContext {
  std::shared_ptr<ImproveDesk> desk;
  std::shared_ptr<Workers> workers;
  const Tokenizer* tokenizer = nullptr;

  // On a worker, since it waits for the disk.
  std::unique_ptr<Answer> answer(Call& call, std::function<Result<Json>(ArtefactStore&)> work) const {
    auto job =
        workers->run<Json>([desk = desk, work = std::move(work)] { return work(desk->in_use().store()); }, call.wake);
    return std::make_unique<JobAnswer<Json>>(std::move(job), std::move(call.record), json_response, improve_failure);
  }
};

std::string asking_owner(const Call& call) {
  std::string user;
  for (auto& [name, value] : query_fields(call.request.query)) {
    if (name == "user") user = std::move(value);
  }
  std::string owner = memory_owner(call.request.client, user);
  call.record->set_user(std::move(user));
  return owner;
}

// The body's fields, and whose they are about.
struct ImproveCall {
  std::string owner, kind, run, conversation;
  bool anyway = false, all = false;
};

std::variant<ImproveCall, ApiError> read_improve_call(const Call& call) {
  auto body = parse_body(call.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&body)) return *error;
  JsonFields fields(std::get<OwnedJson>(body));
  ImproveCall read;
  std::string user;
  fields.string("user", user);
  fields.string("kind", read.kind);
  fields.string("run", read.run);
  fields.string("conversation", read.conversation);
  fields.boolean("anyway", read.anyway);
  fields.boolean("all", read.all);
  if (!fields.ok()) return fields.error();
  read.owner = memory_owner(call.request.client, user);
  call.record->set_user(std::move(user));
  return read;
}

Json parsed_text(const std::string& text) {
  auto json = parse_json(text);
  return json ? std::move(*json) : Json();
}

Result<improve::RunRecord> own_run(const ArtefactStore& store, const std::string& owner, const std::string& id) {
  TRY_ASSIGN(improve::RunRecord run, store.run(id));
  if (run.slot.owner != owner) return Error{Code::not_found, "no run '" + id.substr(0, 80) + "'"};
  return Result<improve::RunRecord>{std::move(run)};
}

Result<improve::Report> own_report(const ArtefactStore& store, const std::string& owner) {
  TRY_ASSIGN(const auto manifest, store.manifest());
  TRY_ASSIGN(auto runs, store.runs(owner));
  return improve::report_of(*manifest, std::move(runs), owner);
}

Json desk_json(const ImproveDesk& desk, const std::string& owner) {
  const ImproveDesk::State state = desk.state();
  Json json{{"running", nullptr}, {"waiting", state.waiting}, {"schedule", Json::object()}};
  if (!state.kind.empty()) {
    const bool is_own = state.owner == owner;
    json["running"] = {{"kind", is_own ? Json(state.kind) : Json()}, {"own", is_own}, {"paused", state.is_paused}};
  }
  for (const auto& [kind, when] : desk.config().schedule) {
    const int64_t next = desk.due(kind);
    json["schedule"][kind] = {{"when", improve::when_text(when)}, {"next", next > 0 ? Json(next) : Json()}};
  }
  return json;
}

std::unique_ptr<Answer> show_improve(const ImproveContext& context, Call call) {
  const std::string owner = asking_owner(call);
  Json clock = desk_json(*context.desk, owner);
  return context.answer(call, [owner, clock = std::move(clock)](ArtefactStore& store) -> Result<Json> {
    TRY_ASSIGN(const improve::Report report, own_report(store, owner));
    Json json = parsed_text(improve::report_json(report));
    json["object"] = "improve";
    json.update(clock);
    return json;
  });
}

std::unique_ptr<Answer> show_report(const ImproveContext& context, Call call) {
  auto job = context.workers->run<std::string>(
      [desk = context.desk, owner = asking_owner(call)]() -> Result<std::string> {
        TRY_ASSIGN(const improve::Report report, own_report(desk->in_use().store(), owner));
        return improve::report_markdown(report);
      },
      call.wake);
  const auto write = [](const std::string& text) {
    HttpResponse response;
    response.add_header("Content-Type", "text/markdown; charset=utf-8");
    response.body = text;
    return response;
  };
  return std::make_unique<JobAnswer<std::string>>(std::move(job), std::move(call.record), write, improve_failure);
}

std::unique_ptr<Answer> show_one_run(const ImproveContext& context, Call call) {
  return context.answer(call, [owner = asking_owner(call), id = call.parameter](ArtefactStore& store) -> Result<Json> {
    TRY_ASSIGN(const improve::RunRecord run, own_run(store, owner, id));
    return parsed_text(improve::run_text(run));
  });
}

std::unique_ptr<Answer> ask_for_run(const ImproveContext& context, Call call) {
  auto read = read_improve_call(call);
  if (const ApiError* error = std::get_if<ApiError>(&read)) return answer_now(call, error_response(*error));
  const auto& wish = std::get<ImproveCall>(read);
  auto keep = context.desk->ask_for(wish.kind, wish.owner);
  if (!keep) return answer_now(call, error_response(improve_failure(keep.error())));
  // Answered once a restart does not lose it.
  const auto work = [keep = std::move(*keep), json = desk_json(*context.desk, wish.owner)]() -> Result<Json> {
    TRY(keep());
    return json;
  };
  const auto accepted = [](const Json& json) {
    HttpResponse response = json_response(json);
    response.status = 202;
    return response;
  };
  return std::make_unique<JobAnswer<Json>>(context.workers->run<Json>(work, call.wake), std::move(call.record),
                                           accepted, improve_failure);
}

std::unique_ptr<Answer> change_in_use(const ImproveContext& context, Call call) {
  auto read = read_improve_call(call);
  if (const ApiError* error = std::get_if<ApiError>(&read)) return answer_now(call, error_response(*error));
  const bool promotes = call.request.path == "/v1/improve/promote";
  return context.answer(call, [wish = std::get<ImproveCall>(read), promotes](ArtefactStore& store) -> Result<Json> {
    if (promotes) {
      TRY(own_run(store, wish.owner, wish.run));
      TRY(improve::promote_run(store, wish.run, wish.anyway));
    } else {
      TRY(store.update([&](improve::Manifest& manifest) {
        return manifest.rollback({wish.owner, wish.kind, ""}, static_cast<int64_t>(std::time(nullptr)));
      }));
    }
    TRY_ASSIGN(const improve::Report report, own_report(store, wish.owner));
    return parsed_text(improve::report_json(report));
  });
}

std::unique_ptr<Answer> forget_what_was_learned(const ImproveContext& context, Call call) {
  auto read = read_improve_call(call);
  if (const ApiError* error = std::get_if<ApiError>(&read)) return answer_now(call, error_response(*error));
  const auto& wish = std::get<ImproveCall>(read);
  if (wish.all == !wish.conversation.empty()) {
    return answer_now(call, error_response({400, "expected `conversation`, or `all`: true", "invalid_request_error",
                                            "conversation", ""}));
  }
  // It may be learning from it at this moment.
  context.desk->end_job();
  if (wish.all) context.desk->drop_waiting(wish.owner);
  const auto work = [wish, journal = context.desk->journal(),
                     tokenizer = context.tokenizer](ArtefactStore& store) -> Result<Json> {
    auto done = wish.all ? improve::forget_owner(*journal, store, wish.owner)
                         : improve::forget_conversation(*journal, store, *tokenizer, wish.owner, wish.conversation);
    if (!done) return done.error();
    return Json{{"object", "improve.forgotten"},
                {"answers", done->answers},
                {"rebuilt", done->rebuilt},
                {"dropped", done->dropped},
                {"runs", done->runs}};
  };
  return context.answer(call, work);
}

}  // namespace

void add_improve_endpoints(Router& router, const Services& services) {
  const ImproveContext context{services.improve, services.workers, &services.chat.tokenizer()};
  using Handler = std::unique_ptr<Answer> (*)(const ImproveContext&, Call);
  const auto where_on = [context](Handler handler) -> RouteHandler {
    return [context, handler](Call call) {
      if (!context.desk) return answer_now(call, error_response(improve_is_off()));
      return handler(context, std::move(call));
    };
  };
  router.add({.method = "GET", .path = "/v1/improve", .handler = where_on(show_improve), .is_polled = true});
  router.add({.method = "GET", .path = "/v1/improve/report", .handler = where_on(show_report)});
  router.add({.method = "POST", .path = "/v1/improve/runs", .handler = where_on(ask_for_run)});
  router.add({.method = "GET", .path = "/v1/improve/runs/{id}", .handler = where_on(show_one_run), .is_polled = true});
  router.add({.method = "POST", .path = "/v1/improve/promote", .handler = where_on(change_in_use)});
  router.add({.method = "POST", .path = "/v1/improve/rollback", .handler = where_on(change_in_use)});
  router.add({.method = "POST", .path = "/v1/improve/forget", .handler = where_on(forget_what_was_learned)});
}

}  // namespace chimere::server
