// request_endpoints.cpp  Requests under way: listed, cancelled, told to stop thinking.
#include <algorithm>
#include <map>

#include "server/admin/request_desk.h"
#include "server/http/api_error.h"

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

Json entry_of(const RequestRecord& record, const InfoById& by_id, const std::string& model) {
  const RequestInfo info = sum_of(record, by_id);
  Json entry;
  entry["id"] = record.id();
  entry["model"] = model;
  entry["state"] = state_name(info.state);
  entry["thinking"] = info.is_thinking;
  entry["prompt_tokens"] = info.prompt_tokens;
  entry["cached_tokens"] = info.cached_tokens;
  entry["completion_tokens"] = info.completion_tokens;
  entry["age_seconds"] = std::chrono::duration<double>(Monitor::Clock::now() - record.started()).count();
  entry["user"] = record.user().empty() ? Json(nullptr) : Json(record.user());
  entry["client"] = record.client().empty() ? Json(nullptr) : Json(record.client());
  return entry;
}

// The oldest first.
Json list_json(const RequestDesk& desk) {
  std::vector<Json> entries;
  if (desk.outside) entries = desk.outside();
  desk.each([&](const Services& services, const std::string& model) {
    const InfoById by_id = engine_requests(services);
    for (const RequestRecord* record : services.monitor.records()) {
      if (record->can_be_cancelled()) entries.push_back(entry_of(*record, by_id, model));
    }
  });
  std::stable_sort(entries.begin(), entries.end(), [](const Json& a, const Json& b) {
    return a["age_seconds"].get<double>() > b["age_seconds"].get<double>();
  });
  return Json{{"data", std::move(entries)}};
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

HttpResponse cancel(const RequestDesk& desk, const std::string& id) {
  bool any = desk.cancel_outside && desk.cancel_outside(id);
  desk.each([&](const Services& services, const std::string&) {
    for (RequestRecord* record : named(services, id)) {
      record->cancel(RequestRecord::CancelledBy::a_call);
      any = true;
    }
  });
  return any ? json_response(Json{{"id", id}, {"cancelled", true}}) : not_found(id);
}

// Whether one of them was thinking.
bool stop_thoughts(const Services& services, const std::vector<RequestRecord*>& records) {
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
  return any;
}

HttpResponse stop_thinking(const RequestDesk& desk, const std::string& id) {
  bool is_there = false, any = false;
  desk.each([&](const Services& services, const std::string&) {
    const std::vector<RequestRecord*> records = named(services, id);
    if (records.empty()) return;
    is_there = true;
    any = stop_thoughts(services, records) || any;
  });
  if (!is_there) return not_found(id);
  if (any) return json_response(Json{{"id", id}, {"stopped", true}});
  return error_response(
      {409, "the request '" + id + "' is not thinking", "invalid_request_error", "id", "not_thinking"});
}

}  // namespace

void add_request_endpoints(Router& router, const RequestDesk& desk) {
  auto list = [desk](Call call) { return answer_now(call, json_response(list_json(desk))); };
  auto cancelled = [desk](Call call) { return answer_now(call, cancel(desk, call.parameter)); };
  auto stopped = [desk](Call call) { return answer_now(call, stop_thinking(desk, call.parameter)); };
  router.add({.method = "GET", .path = "/v1/requests", .handler = list, .is_polled = true});
  router.add({.method = "POST", .path = "/v1/requests/{id}/cancel", .handler = cancelled});
  router.add({.method = "POST", .path = "/v1/requests/{id}/stop_thinking", .handler = stopped});
}

void add_request_endpoints(Router& router, const Services& services) {
  add_request_endpoints(router, {.each = [services](const auto& look) { look(services, services.names.chat); }});
}

}  // namespace chimere::server
