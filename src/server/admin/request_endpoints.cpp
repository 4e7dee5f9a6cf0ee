// request_endpoints.cpp  Requests under way: listed, cancelled, told to stop thinking.
#include <algorithm>
#include <map>

#include "server/endpoints.h"
#include "server/http/api_error.h"
#include "server/http/json.h"

namespace chimere::server {
namespace {

using engine::RequestInfo;
using engine::RequestState;
using InfoById = std::map<engine::RequestId, RequestInfo>;

InfoById engine_requests(const Services& services) {
  InfoById by_id;
  for (const RequestInfo& info : services.chat.engine().list()) by_id[info.id] = info;
  return by_id;
}

// A request may have several answers under way (`n`); what it says is their sum, and the furthest of them.
RequestInfo sum_of(const RequestRecord& record, const InfoById& by_id) {
  RequestInfo sum;
  for (const orchestrator::AnswerStream* stream : record.streams()) {
    const auto found = by_id.find(stream->engine_id());
    if (found == by_id.end()) continue;
    const RequestInfo& info = found->second;
    sum.state = std::max(sum.state, info.state);
    sum.prompt_tokens = std::max(sum.prompt_tokens, info.prompt_tokens);
    sum.cached_tokens = std::max(sum.cached_tokens, info.cached_tokens);
    sum.completion_tokens += info.completion_tokens;
    sum.is_thinking = sum.is_thinking || info.is_thinking;
  }
  return sum;
}

const char* state_name(RequestState state) {
  switch (state) {
    case RequestState::queued: return "queued";
    case RequestState::prefill: return "prefill";
    case RequestState::decode: return "decode";
  }
  return "queued";
}

Json list_json(const Services& services) {
  const InfoById by_id = engine_requests(services);
  std::vector<const RequestRecord*> records;
  for (const RequestRecord* record : services.monitor.records()) {
    if (record->can_be_cancelled()) records.push_back(record);
  }
  std::sort(records.begin(), records.end(), [](const auto* a, const auto* b) { return a->started() < b->started(); });
  const auto now = Monitor::Clock::now();
  Json json;
  json["data"] = Json::array();
  for (const RequestRecord* record : records) {
    const RequestInfo info = sum_of(*record, by_id);
    Json entry;
    entry["id"] = record->id();
    entry["state"] = state_name(info.state);
    entry["thinking"] = info.is_thinking;
    entry["prompt_tokens"] = info.prompt_tokens;
    entry["cached_tokens"] = info.cached_tokens;
    entry["completion_tokens"] = info.completion_tokens;
    entry["age_seconds"] = std::chrono::duration<double>(now - record->started()).count();
    entry["user"] = record->user().empty() ? Json(nullptr) : Json(record->user());
    entry["client"] = record->client().empty() ? Json(nullptr) : Json(record->client());
    json["data"].push_back(std::move(entry));
  }
  return json;
}

// A client may give the same name to several requests; a word to that name concerns all of them.
std::vector<RequestRecord*> named(const Services& services, const std::string& id) {
  std::vector<RequestRecord*> found;
  for (RequestRecord* record : services.monitor.records()) {
    if (record->id() == id && record->can_be_cancelled()) found.push_back(record);
  }
  return found;
}

HttpResponse not_found(const std::string& id) {
  return error_response(
      {404, "no request under way has the id '" + id + "'", "invalid_request_error", "id", "not_found"});
}

HttpResponse cancel(const Services& services, const std::string& id) {
  const std::vector<RequestRecord*> records = named(services, id);
  if (records.empty()) return not_found(id);
  for (RequestRecord* record : records) record->cancel(RequestRecord::CancelledBy::a_call);
  return json_response(Json{{"id", id}, {"cancelled", true}});
}

HttpResponse stop_thinking(const Services& services, const std::string& id) {
  const std::vector<RequestRecord*> records = named(services, id);
  if (records.empty()) return not_found(id);
  const InfoById by_id = engine_requests(services);
  bool any = false;
  for (const RequestRecord* record : records) {
    for (orchestrator::AnswerStream* stream : record->streams()) {
      const auto found = by_id.find(stream->engine_id());
      if (found == by_id.end() || !found->second.is_thinking) continue;
      stream->stop_thinking();
      any = true;
    }
  }
  if (any) return json_response(Json{{"id", id}, {"stopped", true}});
  return error_response(
      {409, "the request '" + id + "' is not thinking", "invalid_request_error", "id", "not_thinking"});
}

}  // namespace

void add_request_endpoints(Router& router, const Services& services) {
  auto list = [services](Call call) { return answer_now(call, json_response(list_json(services))); };
  auto cancelled = [services](Call call) { return answer_now(call, cancel(services, call.parameter)); };
  auto stopped = [services](Call call) { return answer_now(call, stop_thinking(services, call.parameter)); };
  router.add({.method = "GET", .path = "/v1/requests", .handler = list, .is_polled = true});
  router.add({.method = "POST", .path = "/v1/requests/{id}/cancel", .handler = cancelled});
  router.add({.method = "POST", .path = "/v1/requests/{id}/stop_thinking", .handler = stopped});
}

}  // namespace chimere::server
