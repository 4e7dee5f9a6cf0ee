// conversation_endpoints.cpp  /v1/conversations: what clients keep here of their conversations. The server reads nothing
// of them; it tells revisions, so that several clients of one owner can agree.
#include <charconv>
#include <utility>

#include "server/admin/conversation_store.h"
#include "server/endpoints.h"
#include "server/http/json.h"
#include "server/job_answer.h"

namespace chimere::server {
namespace {

using Store = ConversationStore;

struct Context {
  std::shared_ptr<Store> store;
  std::shared_ptr<Workers> workers;

  // On a worker, since it waits for the disk.
  template <class T>
  std::unique_ptr<Answer> answer(Call& call, std::function<Result<T>(Store&)> work,
                                 std::function<HttpResponse(const T&)> write) const {
    auto job = workers->run<T>([store = store, work = std::move(work)] { return work(*store); }, call.wake);
    return std::make_unique<JobAnswer<T>>(std::move(job), std::move(call.record), std::move(write));
  }
};

std::string tag_of(uint64_t revision) { return '"' + std::to_string(revision) + '"'; }

HttpResponse tagged(const Json& json, const std::string& tag) {
  HttpResponse response = json_response(json);
  response.add_header("ETag", tag);
  return response;
}

// If-Match: "12" or If-None-Match: *; an error says what they must be.
std::variant<Store::Condition, ApiError> condition_of(const HttpRequest& request) {
  Store::Condition condition;
  const std::string_view match = request.header("If-Match");
  const std::string_view none = request.header("If-None-Match");
  if (!match.empty()) {
    uint64_t revision = 0;
    const char* end = match.data() + match.size() - 1;
    const bool is_quoted = match.size() > 2 && match.front() == '"' && match.back() == '"';
    const auto read = std::from_chars(match.data() + 1, is_quoted ? end : match.data() + 1, revision);
    const bool is_tag = is_quoted && read.ptr == end && read.ec == std::errc();
    if (!is_tag) return ApiError{400, "If-Match: expected a revision, as \"12\"", "invalid_request_error", "", ""};
    condition.revision = revision;
  }
  if (!none.empty()) {
    if (none != "*") return ApiError{400, "If-None-Match: expected *", "invalid_request_error", "", ""};
    condition.is_absent = true;
  }
  return condition;
}

ApiError unknown(const std::string& id) {
  return {404, "there is no conversation '" + id + "'", "invalid_request_error", "id", "not_found"};
}

HttpResponse changed(const std::string& id, const char* object, const Store::Change& change) {
  using Outcome = Store::Change::Outcome;
  if (change.outcome == Outcome::missing) return error_response(unknown(id));
  if (change.outcome == Outcome::no_room) {
    return error_response({507, change.no_room, "insufficient_storage_error", "", "insufficient_storage"});
  }
  if (change.outcome == Outcome::changed_meanwhile) {
    HttpResponse response = error_response(
        {412,
         change.revision == 0 ? "the conversation is not there (any more)"
                              : "the conversation is at revision " + std::to_string(change.revision) + " by now",
         "invalid_request_error", "id", "revision_changed"});
    if (change.revision > 0) response.add_header("ETag", tag_of(change.revision));
    return response;
  }
  return tagged(Json{{"object", object}, {"id", id}, {"revision", change.revision}}, tag_of(change.revision));
}

std::unique_ptr<Answer> list_all(const Context& context, Call call) {
  const auto write = [asked = std::string(call.request.header("If-None-Match")),
                      limits = context.store->limits()](const Store::Listing& list) {
    const std::string tag = '"' + list.store + "-" + std::to_string(list.revision) + '"';
    if (asked == tag) return HttpResponse{304, {{"ETag", tag}}, {}};
    Json json{{"object", "list"}, {"store", list.store}, {"revision", list.revision}, {"data", Json::array()}};
    for (const Store::Entry& entry : list.entries) {
      json["data"].push_back({{"id", entry.id}, {"revision", entry.revision}, {"bytes", entry.bytes}});
    }
    json["bytes"] = list.bytes;
    json["limits"] = {{"count", limits.owner_count}, {"bytes", limits.owner_bytes}};
    return tagged(json, tag);
  };
  return context.answer<Store::Listing>(
      call, [owner = call.request.client](Store& store) { return store.list(owner); }, write);
}

std::unique_ptr<Answer> read_one(const Context& context, Call call) {
  const auto write = [id = call.parameter](const std::optional<Store::Kept>& kept) {
    if (!kept) return error_response(unknown(id));
    return HttpResponse{200, {{"Content-Type", "application/json"}, {"ETag", tag_of(kept->revision)}}, kept->json};
  };
  return context.answer<std::optional<Store::Kept>>(
      call, [owner = call.request.client, id = call.parameter](Store& store) { return store.get(owner, id); }, write);
}

std::unique_ptr<Answer> change_one(const Context& context, Call call) {
  const auto condition = condition_of(call.request);
  if (const ApiError* error = std::get_if<ApiError>(&condition)) return answer_now(call, error_response(*error));
  const std::string id = call.parameter;
  const bool removes = call.request.method == "DELETE";
  const auto write = [id, removes](const Store::Change& change) {
    return changed(id, removes ? "conversation.deleted" : "conversation", change);
  };
  const auto work = [removes, id, owner = call.request.client, condition = std::get<Store::Condition>(condition),
                     body = std::make_shared<std::string>(std::move(call.request.body)),
                     lease = call.request.body_lease](Store& store) -> Result<Store::Change> {
    if (removes) return store.remove(owner, id, condition);
    const auto parsed = parse_json(*body);
    if (!parsed) return Error{Code::invalid_argument, "the body: " + parsed.error().message};
    if (!parsed->is_object()) {
      return Error{Code::invalid_argument, std::string("the body: expected an object, found ") + describe(*parsed)};
    }
    return store.put(owner, id, *body, condition);
  };
  return context.answer<Store::Change>(call, work, write);
}

std::unique_ptr<Answer> clear_all(const Context& context, Call call) {
  const auto write = [](const size_t& count) {
    return json_response(Json{{"object", "conversations.deleted"}, {"deleted", count}});
  };
  return context.answer<size_t>(
      call, [owner = call.request.client](Store& store) { return store.clear(owner); }, write);
}

using Handler = std::unique_ptr<Answer> (*)(const Context&, Call);

RouteHandler of_one(const Context& context, Handler handler) {
  return [context, handler](Call call) {
    if (Store::is_id(call.parameter)) return handler(context, std::move(call));
    return answer_now(call, error_response({400, "id: expected 1 to 64 letters, digits, '-' and '_'",
                                            "invalid_request_error", "id", ""}));
  };
}

}  // namespace

void add_conversation_endpoints(Router& router, std::shared_ptr<ConversationStore> store,
                                std::shared_ptr<Workers> workers) {
  if (!store) return;
  const Context context{std::move(store), std::move(workers)};
  const auto of_all = [context](Handler handler) {
    return [context, handler](Call call) { return handler(context, std::move(call)); };
  };
  // Pages look again and again whether another one has changed something.
  router.add({.method = "GET", .path = "/v1/conversations", .handler = of_all(list_all), .is_polled = true});
  router.add({.method = "DELETE", .path = "/v1/conversations", .handler = of_all(clear_all)});
  router.add({.method = "GET", .path = "/v1/conversations/{id}", .handler = of_one(context, read_one)});
  router.add({.method = "PUT", .path = "/v1/conversations/{id}", .handler = of_one(context, change_one)});
  router.add({.method = "DELETE", .path = "/v1/conversations/{id}", .handler = of_one(context, change_one)});
}

}  // namespace chimere::server
