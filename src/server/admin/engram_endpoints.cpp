// engram_endpoints.cpp  /v1/engram: what tables and passages there are; accept, notes and forget below it: what is kept
// of answers that a user found good, and what is taken back; query: what there is about a text.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/hash.h"
#include "server/endpoints.h"
#include "server/job_answer.h"
#include "server/protocols/shared/engram_field.h"
#include "server/protocols/shared/generate_fields.h"
#include "server/protocols/shared/json_fields.h"

namespace chimere::server {
namespace {

using orchestrator::ServiceJob;

constexpr size_t kMaxLessonBytes = size_t{256} << 10;
constexpr size_t kMaxQueryBytes = 4096;
constexpr int64_t kMaxEntries = 50;
constexpr const char* kDefaultSource = "accepted";

ApiError failure(const Error& error) {
  if (error.code != Code::not_found) return to_api_error(error);
  return {404, without_folders(error.message), "invalid_request_error", "source", "not_found"};
}

// The answer to a call that remembers, forgets or lists.
template <class T>
std::unique_ptr<Answer> answer_later(std::unique_ptr<ServiceJob<T>> job, Call& call,
                                     typename JobAnswer<T>::Writer write, std::string ignored = {}) {
  return std::make_unique<JobAnswer<T>>(std::move(job), std::move(call.record), std::move(write), failure,
                                        std::move(ignored));
}

// Whose memory a request without a body is about: of its key, and of the user it names behind '?'.
std::string asked_owner(const Call& call) {
  std::string user;
  for (auto& [name, value] : query_fields(call.request.query)) {
    if (name == "user") user = std::move(value);
  }
  std::string owner = memory_owner(call.request.client, user);
  call.record->set_user(std::move(user));
  return owner;
}

// Whose notes it is about. Notes that belong to nobody would be everybody's.
std::string read_owner(JsonFields& fields, const Call& call) {
  std::string user;
  fields.string("user", user);
  std::string owner = memory_owner(call.request.client, user);
  if (owner.empty()) fields.fail("user", "expected the name of the user whose memory it is about, found none");
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

Json room_json(const retrieval::NoteUsage& usage) { return {{"bytes", usage.bytes}, {"users", usage.files}}; }

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
    if (memories.own) {
      json["own"] = entry(*memories.own);
      json["own"]["notes"] = memories.n_notes;
      json["own"]["bytes"] = memories.used.file.bytes;
    }
    if (memories.limits) {
      const retrieval::NoteLimits& limits = *memories.limits;
      json["used"] = {{"key", room_json(memories.used.key)}, {"all", room_json(memories.used.all)}};
      json["limits"] = {{"own", {{"bytes", limits.file_bytes}, {"notes", limits.file_notes}}},
                        {"key", room_json({limits.key_bytes, limits.key_files})},
                        {"all", room_json({limits.all_bytes, limits.all_files})}};
    }
    return json_response(json);
  };
  auto job = services.chat.memory().list(asked_owner(call), call.wake);
  return answer_later(std::move(job), call, write);
}

std::unique_ptr<Answer> notes(const Services& services, Call call) {
  using Notes = std::vector<retrieval::Note>;
  std::string owner = asked_owner(call);
  if (owner.empty()) {
    return answer_now(
        call,
        error_response(
            {400, "user: expected ?user=NAME, whose notes they are, found none", "invalid_request_error", "user", {}}));
  }
  const auto write = [](const Notes& all) {
    Json json{{"object", "list"}, {"data", Json::array()}};
    for (const retrieval::Note& note : all) {
      json["data"].push_back({{"id", note.id},
                              {"source", note.source},
                              {"created", int64_t{note.day} * 86400},
                              {"score", note.score},
                              {"text", note.text}});
    }
    return json_response(json);
  };
  auto job = services.chat.memory().list_notes(std::move(owner), call.wake);
  return answer_later(std::move(job), call, write);
}

// "00c3..." of a text: the same text has the same, whoever keeps it.
std::string text_hash(const std::string& text) {
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(hash64(text)));
  return hex;
}

// POST /v1/engram/query, with the fields that clients of such orchestrators know.
std::unique_ptr<Answer> query_own(const Services& services, Call call, OwnedJson& body) {
  JsonFields fields(body);
  orchestrator::MemoryQuery asked;
  std::string user;
  int64_t top = static_cast<int64_t>(asked.top);
  fields.string("query", asked.text);
  fields.string("domain", asked.domain);
  fields.string("user", user);
  fields.integer("top_k", top, 1, kMaxEntries);
  fields.number("min_similarity", asked.min_similarity, 0, 1);
  asked.top = static_cast<size_t>(top);
  asked.owner = memory_owner(call.request.client, user);
  call.record->set_user(std::move(user));
  const bool is_own =
      asked.domain.empty() || asked.domain == orchestrator::kNotesDomain || asked.domain == orchestrator::kOwnDomain;
  if (asked.owner.empty() && is_own) {
    fields.fail("user", "expected the name of the user whose memory it is about, found none");
  }
  if (asked.text.empty() || asked.text.size() > kMaxQueryBytes) {
    fields.fail("query", "expected a text of 1 to " + std::to_string(kMaxQueryBytes) + " bytes, found one of " +
                             std::to_string(asked.text.size()));
  }
  if (!fields.ok()) return answer_now(call, error_response(fields.error()));
  const auto write = [domain = asked.domain](const std::vector<orchestrator::MemoryEntry>& entries) {
    Json json{{"object", "engram.query"}, {"entries", Json::array()}};
    for (const orchestrator::MemoryEntry& entry : entries) {
      json["entries"].push_back({{"text", entry.text},
                                 {"domain", entry.domain},
                                 {"similarity", entry.similarity},
                                 {"prompt_hash", text_hash(entry.text)}});
    }
    json["method"] = domain.empty() ? "words+ngrams" : domain == orchestrator::kNotesDomain ? "words" : "ngrams";
    return json_response(json);
  };
  const auto failed = [](const Error& error) -> ApiError {
    if (error.code != Code::not_found) return to_api_error(error);
    return {404, error.message, "invalid_request_error", "domain", "not_found"};
  };
  auto job = services.chat.memory().query(std::move(asked), call.wake);
  return std::make_unique<JobAnswer<std::vector<orchestrator::MemoryEntry>>>(
      std::move(job), std::move(call.record), write, failed, ignored_header(fields.unknown()));
}

std::unique_ptr<Answer> accept(const Services& services, Call call, OwnedJson& body) {
  JsonFields fields(body);
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
    if (!learned.no_room.empty()) {
      return error_response({507, learned.no_room, "insufficient_storage_error", {}, "insufficient_storage"});
    }
    Json json{{"object", "engram.lesson"}, {"learned", learned.learned}, {"source", source}, {"score", score},
              {"threshold", threshold},    {"tokens", learned.n_tokens}};
    if (learned.learned) json["note"] = learned.note;
    return json_response(json);
  };
  return answer_later(services.chat.memory().learn(std::move(lesson), call.wake), call, write,
                      ignored_header(fields.unknown()));
}

std::unique_ptr<Answer> forget(const Services& services, Call call, OwnedJson& body) {
  JsonFields fields(body);
  orchestrator::ForgetCall what;
  what.owner = read_owner(fields, call);
  what.source = kDefaultSource;
  int64_t note = 0;
  fields.string("source", what.source);
  fields.integer("note", note, 1, INT64_MAX);
  fields.boolean("all", what.everything);
  what.note = static_cast<uint64_t>(note);
  const int ways = (fields.find("source") ? 1 : 0) + (note != 0 ? 1 : 0) + (what.everything ? 1 : 0);
  if (ways > 1) fields.fail("source", "expected one of source, note and all, found " + std::to_string(ways));
  if (!fields.ok()) return answer_now(call, error_response(fields.error()));
  const auto write = [what](const orchestrator::Forgotten& removed) {
    Json json{{"object", "engram.forgotten"}};
    if (!what.everything && what.note == 0) json["source"] = what.source;
    json["removed_sources"] = removed.sources;
    json["removed_notes"] = removed.notes;
    json["removed_ngrams"] = removed.ngrams;
    return json_response(json);
  };
  return answer_later(services.chat.memory().forget(what, call.wake), call, write, ignored_header(fields.unknown()));
}

}  // namespace

void add_engram_endpoints(Router& router, const Services& services) {
  router.add({.method = "GET", .path = "/v1/engram", .handler = [services](Call call) {
                return list(services, std::move(call));
              }});
  router.add({.method = "GET", .path = "/v1/engram/notes", .handler = [services](Call call) {
                return notes(services, std::move(call));
              }});
  add_parsed_route(router, services, "/v1/engram/query", parse_body, query_own);
  add_parsed_route(router, services, "/v1/engram/accept", parse_body, accept);
  add_parsed_route(router, services, "/v1/engram/forget", parse_body, forget);
}

}  // namespace chimere::server
