// collection_endpoints.cpp  /v1/collections: documents that a key keeps here, and what they say about a question.
//
// Documents are read and embedded by a thread of their own, one after another, so that a long one holds up neither
// searches nor anybody's answer. Who leaves before theirs is stored has it stopped.
#include <algorithm>
#include <fstream>
#include <utility>

#include "retrieval/collections.h"
#include "retrieval/hit_json.h"
#include "server/admin/collection_desk.h"
#include "server/batch/batch_store.h"
#include "server/batch/multipart.h"
#include "server/http/json.h"
#include "server/job_answer.h"
#include "server/protocols/shared/generate_fields.h"
#include "server/protocols/shared/json_fields.h"

namespace chimere::server {
namespace {

using retrieval::Collections;

constexpr size_t kShownTextNameBytes = 255;
constexpr const char* kDefaultName = "document.txt";

struct CollectionContext : CollectionDesk {
  std::shared_ptr<Workers> adding = std::make_shared<Workers>(1);
  std::shared_ptr<Workers> looking = std::make_shared<Workers>(2);
};

ApiError collection_failure(const Error& error) {
  if (error.code == Code::not_found) return {404, error.message, "invalid_request_error", {}, "not_found"};
  if (error.code == Code::exhausted) {
    return {507, error.message, "insufficient_storage_error", {}, "insufficient_storage"};
  }
  if (error.code == Code::unsupported) return {415, error.message, "invalid_request_error", {}, "unsupported"};
  return to_api_error(error);
}

// What a job gives: its answer, and how much there is now.
template <class T>
struct Told {
  T result;
  retrieval::OwnerUsage all;
};

// `work` runs on one of `workers`, `write` on the I/O thread.
template <class T>
std::unique_ptr<Answer> answer_from(const CollectionContext& context, Workers& workers, Call& call,
                                    std::function<Result<T>(Collections&)> work,
                                    std::function<HttpResponse(const T&)> write) {
  const auto told = [collections = context.collections, work = std::move(work)]() -> Result<Told<T>> {
    TRY_ASSIGN(T result, work(*collections));
    TRY_ASSIGN(const retrieval::OwnerUsage all, collections->usage_of_all());
    return Result<Told<T>>{Told<T>{std::move(result), all}};
  };
  const auto tell = [monitor = context.monitor, write = std::move(write)](const Told<T>& done) {
    monitor->collections = {done.all.documents, done.all.chunks, done.all.bytes};
    return write(done.result);
  };
  auto job = workers.run<Told<T>>(told, call.wake);
  return std::make_unique<JobAnswer<Told<T>>>(std::move(job), std::move(call.record), tell, collection_failure);
}

Json usage_json(const retrieval::OwnerUsage& usage) {
  return {{"documents", usage.documents}, {"chunks", usage.chunks}, {"bytes", usage.bytes}};
}

Json collection_json(const retrieval::CollectionInfo& info) {
  return {{"object", "collection"},      {"name", info.name},     {"created_at", info.created},
          {"documents", info.documents}, {"chunks", info.chunks}, {"bytes", info.bytes}};
}

Json document_json(const retrieval::DocumentInfo& info) {
  return {{"object", "collection.document"},
          {"name", info.name},
          {"title", info.title},
          {"kind", info.kind},
          {"bytes", info.bytes},
          {"chunks", info.chunks},
          {"modified_at", info.modified},
          {"created_at", info.added}};
}

Json added_json(const retrieval::Added& added) {
  Json json = document_json(added.document);
  json["status"] = !added.is_new ? "unchanged" : added.is_replaced ? "replaced" : "added";
  return json;
}

// Of a file that is sent by itself: what a body has room for beside the head of its part.
uint64_t most_document_bytes(const Collections& collections, size_t max_body_bytes) {
  const size_t room = max_body_bytes - std::min(max_body_bytes, kMaxPartHeadBytes);
  return std::min<uint64_t>(collections.limits().document_bytes, room);
}

std::unique_ptr<Answer> list_collections(const CollectionContext& context, Call call) {
  const auto work = [owner = call.request.client,
                     max_body_bytes = context.max_body_bytes](Collections& collections) -> Result<Json> {
    TRY_ASSIGN(const auto all, collections.list(owner));
    TRY_ASSIGN(const retrieval::OwnerUsage used, collections.usage(owner));
    Json json{{"object", "list"}, {"data", Json::array()}};
    for (const auto& one : all) json["data"].push_back(collection_json(one));
    const retrieval::CollectionLimits& limits = collections.limits();
    json["used"] = usage_json(used);
    json["limits"] = usage_json({limits.documents, limits.chunks, limits.bytes});
    json["limits"]["collections"] = limits.collections;
    json["limits"]["document_bytes"] = most_document_bytes(collections, max_body_bytes);
    return json;
  };
  return answer_from<Json>(context, *context.looking, call, work, json_response);
}

std::unique_ptr<Answer> create_collection(const CollectionContext& context, Call call) {
  auto parsed = parse_body(call.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return answer_now(call, error_response(*error));
  JsonFields fields(std::get<OwnedJson>(parsed));
  std::string name;
  fields.string("name", name);
  if (!Collections::is_name(name)) fields.fail("name", "expected 1 to 64 letters, digits, '-', '_' and '.'");
  if (!fields.ok()) return answer_now(call, error_response(fields.error()));
  const auto work = [owner = call.request.client, name](Collections& collections) -> Result<Json> {
    TRY(collections.create(owner, name));
    TRY_ASSIGN(const auto all, collections.list(owner));
    for (const auto& one : all) {
      if (one.name == name) return collection_json(one);
    }
    return Error{Code::not_found, "collection '" + name + "' was removed meanwhile"};
  };
  return answer_from<Json>(context, *context.looking, call, work, json_response);
}

std::unique_ptr<Answer> delete_collection(const CollectionContext& context, Call call) {
  const auto work = [owner = call.request.client, name = call.parameter](Collections& collections) -> Result<Json> {
    TRY(collections.remove(owner, name));
    return Json{{"object", "collection.deleted"}, {"name", name}, {"deleted", true}};
  };
  return answer_from<Json>(context, *context.looking, call, work, json_response);
}

std::unique_ptr<Answer> list_documents(const CollectionContext& context, Call call) {
  const auto work = [owner = call.request.client, name = call.parameter](Collections& collections) -> Result<Json> {
    TRY_ASSIGN(const auto all, collections.documents(owner, name));
    Json json{{"object", "list"}, {"data", Json::array()}};
    for (const auto& one : all) json["data"].push_back(document_json(one));
    return json;
  };
  return answer_from<Json>(context, *context.looking, call, work, json_response);
}

std::unique_ptr<Answer> delete_document(const CollectionContext& context, Call call) {
  std::string document;
  for (const auto& field : query_fields(call.request.query)) {
    if (field.first == "name") document = field.second;
  }
  if (document.empty()) {
    return answer_now(
        call, error_response({400, "name: expected ?name=DOCUMENT, found none", "invalid_request_error", "name", ""}));
  }
  const auto work = [owner = call.request.client, name = call.parameter,
                     document](Collections& collections) -> Result<Json> {
    TRY(collections.remove_document(owner, name, document));
    return Json{{"object", "collection.document.deleted"}, {"name", document}, {"deleted", true}};
  };
  return answer_from<Json>(context, *context.looking, call, work, json_response);
}

// A document on its way in.
struct Sent {
  std::string name;
  std::string_view text;  // inside of what it came in
  std::string kept;       // or here
};

Result<std::string> content_of(BatchStore* files, const std::string& owner, const std::string& id, std::string& name) {
  if (!files) return Error{Code::unsupported, "file_id: this server keeps no files"};
  const auto file = files->file(owner, id);
  if (!file) return Error{Code::not_found, "file_id: there is no file '" + id.substr(0, kShownTextNameBytes) + "'"};
  if (name.empty()) name = file->name;
  TRY_ASSIGN(const auto in, files->content(owner, id));
  return std::string(std::istreambuf_iterator<char>(*in), {});
}

// {"name", "text"} or {"file_id"}.
Result<Sent> sent_as_json(const std::string& body, BatchStore* files, const std::string& owner) {
  auto parsed = parse_body(body);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return Error{Code::invalid_argument, error->message};
  JsonFields fields(std::get<OwnedJson>(parsed));
  Sent sent;
  std::string file;
  fields.string("name", sent.name);
  fields.string("text", sent.kept);
  fields.string("file_id", file);
  if (!fields.ok()) return Error{Code::invalid_argument, fields.error().message};
  if (sent.kept.empty() == file.empty()) {
    return Error{Code::invalid_argument,
                 "text: expected either text or file_id, found " + std::string(file.empty() ? "none" : "both")};
  }
  if (!file.empty()) {
    TRY_ASSIGN(sent.kept, content_of(files, owner, file, sent.name));
  }
  if (sent.name.empty()) sent.name = kDefaultName;
  return Result<Sent>{std::move(sent)};
}

Result<std::vector<Sent>> sent_documents(const std::string& type, const std::string& body, BatchStore* files,
                                         const std::string& owner) {
  std::vector<Sent> all;
  if (!type.starts_with("multipart/")) {
    TRY_ASSIGN(Sent one, sent_as_json(body, files, owner));
    all.push_back(std::move(one));
    return Result<std::vector<Sent>>{std::move(all)};
  }
  TRY_ASSIGN(const auto parts, parse_multipart(type, body));
  for (const FormPart& part : parts) {
    if (part.name == "file") all.push_back({part.filename.empty() ? kDefaultName : part.filename, part.content, {}});
  }
  if (all.empty()) return Error{Code::invalid_argument, "file: expected a part of this name, found none"};
  return Result<std::vector<Sent>>{std::move(all)};
}

std::unique_ptr<Answer> add_documents(const CollectionContext& context, Call call) {
  // Gone when the answer is: then nobody waits for it any more.
  const auto asked = std::make_shared<bool>(true);
  const auto work = [files = context.files, owner = call.request.client, name = call.parameter,
                     lease = call.request.body_lease, type = std::string(call.request.header("Content-Type")),
                     body = std::make_shared<std::string>(std::move(call.request.body)),
                     waits = std::weak_ptr(asked)](Collections& collections) -> Result<Json> {
    TRY_ASSIGN(const std::vector<Sent> sent, sent_documents(type, *body, files.get(), owner));
    Json json{{"object", "list"}, {"data", Json::array()}};
    for (const Sent& one : sent) {
      const auto added =
          collections.add({owner, name, one.name, one.text.data() ? one.text : std::string_view(one.kept), 0,
                           [&waits] { return waits.expired(); }});
      if (!added && sent.size() == 1) return added.error();
      json["data"].push_back(added ? added_json(*added)
                                   : Json{{"object", "collection.document"},
                                          {"name", one.name},
                                          {"status", "refused"},
                                          {"error", added.error().message}});
    }
    return json;
  };
  const auto write = [asked, monitor = context.monitor](const Json& json) {
    for (const Json& one : json["data"]) {
      monitor->documents_added += one["status"] == "added" || one["status"] == "replaced" ? 1 : 0;
    }
    return json_response(json);
  };
  return answer_from<Json>(context, *context.adding, call, work, write);
}

std::optional<retrieval::SearchMode> search_mode(const std::string& name) {
  using retrieval::SearchMode;
  for (const SearchMode mode : {SearchMode::words, SearchMode::vectors, SearchMode::hybrid}) {
    if (name == search_mode_name(mode)) return mode;
  }
  return std::nullopt;
}

Json trace_json(const retrieval::SearchTrace& trace) {
  return {{"words_ms", trace.words_ms},          {"embed_ms", trace.embed_ms},   {"vectors_ms", trace.vectors_ms},
          {"match_ms", trace.match_ms},          {"rerank_ms", trace.rerank_ms}, {"found_by_words", trace.n_words},
          {"found_by_vectors", trace.n_vectors}, {"skipped", trace.skipped}};
}

std::unique_ptr<Answer> search(const CollectionContext& context, Call call) {
  auto parsed = parse_body(call.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return answer_now(call, error_response(*error));
  JsonFields fields(std::get<OwnedJson>(parsed));
  retrieval::SearchCall asked;
  asked.owner = call.request.client;
  asked.collections = {call.parameter};
  std::string mode = search_mode_name(asked.mode);
  int64_t k = static_cast<int64_t>(asked.k);
  fields.string("query", asked.query);
  fields.integer("k", k, 1, static_cast<int64_t>(retrieval::kMaxHits));
  fields.string("mode", mode);
  fields.boolean("match", asked.match);
  fields.boolean("rerank", asked.rerank);
  if (asked.query.empty()) fields.fail("query", "expected a question, found none");
  const auto known = search_mode(mode);
  if (!known) fields.fail("mode", "expected \"words\", \"vectors\" or \"hybrid\", found '" + mode.substr(0, 40) + "'");
  if (!fields.ok()) return answer_now(call, error_response(fields.error()));
  asked.mode = *known;
  asked.k = static_cast<size_t>(k);
  if (context.timeout.count() > 0) asked.deadline = call.record->started() + context.timeout;
  const auto waits = std::make_shared<bool>(true);
  asked.is_cancelled = [waiting = std::weak_ptr(waits)] { return waiting.expired(); };
  const auto work = [asked](Collections& collections) -> Result<Json> {
    retrieval::SearchTrace trace;
    TRY_ASSIGN(const auto hits, collections.search(asked, &trace));
    Json json{{"object", "collection.search"}, {"mode", search_mode_name(asked.mode)}, {"data", Json::array()}};
    for (const retrieval::Hit& hit : hits) json["data"].push_back(retrieval::hit_json(hit));
    json["trace"] = trace_json(trace);
    return json;
  };
  const auto write = [waits, monitor = context.monitor, began = Monitor::Clock::now(),
                      ignored = ignored_header(fields.unknown())](const Json& json) {
    monitor->search_seconds.add(std::chrono::duration<double>(Monitor::Clock::now() - began).count());
    HttpResponse response = json_response(json);
    if (!ignored.empty()) response.add_header("X-Chimere-Ignored", ignored);
    return response;
  };
  return answer_from<Json>(context, *context.looking, call, work, write);
}

}  // namespace

void add_collection_endpoints(Router& router, const CollectionDesk& desk) {
  if (!desk.collections) return;
  const CollectionContext context{desk};
  const auto with = [context](std::unique_ptr<Answer> (*handler)(const CollectionContext&, Call)) {
    return [context, handler](Call call) { return handler(context, std::move(call)); };
  };
  router.add({.method = "GET", .path = "/v1/collections", .handler = with(list_collections)});
  router.add({.method = "POST", .path = "/v1/collections", .handler = with(create_collection)});
  router.add({.method = "DELETE", .path = "/v1/collections/{id}", .handler = with(delete_collection)});
  router.add({.method = "GET", .path = "/v1/collections/{id}/documents", .handler = with(list_documents)});
  router.add({.method = "POST", .path = "/v1/collections/{id}/documents", .handler = with(add_documents)});
  router.add({.method = "DELETE", .path = "/v1/collections/{id}/documents", .handler = with(delete_document)});
  router.add({.method = "POST", .path = "/v1/collections/{id}/search", .handler = with(search)});
}

void add_collection_endpoints(Router& router, const Services& services) {
  add_collection_endpoints(router, {services.collections, services.batches, &services.monitor, services.request_timeout,
                                    services.max_body_bytes});
}

}  // namespace chimere::server
