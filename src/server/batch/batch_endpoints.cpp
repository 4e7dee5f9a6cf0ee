// batch_endpoints.cpp  /v1/files and /v1/batches, as OpenAI's clients know them: many requests at once, answered when
// nobody waits.
#include <algorithm>
#include <charconv>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "server/batch/batch_desk.h"
#include "server/batch/batch_json.h"
#include "server/batch/batch_store.h"
#include "server/batch/multipart.h"
#include "server/endpoints.h"
#include "server/job_answer.h"
#include "server/protocols/shared/generate_fields.h"
#include "server/protocols/shared/json_fields.h"
#include "text/utf8.h"

namespace chimere::server {
namespace {

constexpr size_t kMaxFileNameBytes = 255;
constexpr size_t kContentPieceBytes = 256 << 10;
constexpr size_t kMaxMetadata = 16;
constexpr size_t kMaxMetadataBytes = 512;

ApiError batch_failure(const Error& error) {
  if (error.code == Code::not_found) return {404, error.message, "invalid_request_error", "id", "not_found"};
  if (error.code == Code::exhausted) {
    return {507, error.message, "insufficient_storage_error", {}, "insufficient_storage"};
  }
  return to_api_error(error);
}

// On a worker, since it waits for the disk.
template <class T>
std::unique_ptr<Answer> on_worker(const BatchDesk& desk, Call& call, std::function<Result<T>()> work,
                                  std::function<HttpResponse(const T&)> write) {
  auto job = desk.workers->run<T>(std::move(work), call.wake);
  return std::make_unique<JobAnswer<T>>(std::move(job), std::move(call.record), std::move(write), batch_failure);
}

// A file as it is read, piece by piece: results may be larger than what a connection should hold.
class ContentAnswer : public Answer {
 public:
  ContentAnswer(const BatchDesk& desk, Call call)
      : workers_(desk.workers), wake_(std::move(call.wake)), record_(std::move(call.record)) {
    job_ = workers_->run<Chunk>(
        [store = desk.batches, owner = call.request.client, id = call.parameter]() -> Result<Chunk> {
          TRY_ASSIGN(auto in, store->content(owner, id));
          return next(std::move(in));
        },
        wake_);
  }

  Piece poll() override {
    Piece piece;
    auto chunk = job_->poll();
    if (!chunk) return piece;
    if (!*chunk) {
      if (has_head_) throw std::runtime_error(chunk->error().message);
      piece.head = error_response(batch_failure(chunk->error()));
      piece.done = true;
      record_->set_status(piece.head->status);
      return piece;
    }
    if (!has_head_) piece.head = HttpResponse{200, {{"Content-Type", "application/octet-stream"}}, {}};
    has_head_ = true;
    piece.body = std::move((*chunk)->bytes);
    piece.done = piece.body.empty();
    record_->set_status(200);
    if (!piece.done) job_ = workers_->run<Chunk>([in = (*chunk)->in] { return next(in); }, wake_);
    return piece;
  }

 private:
  struct Chunk {
    std::shared_ptr<std::ifstream> in;
    std::string bytes;  // none: that was all
  };

  static Result<Chunk> next(std::shared_ptr<std::ifstream> in) {
    std::string bytes(kContentPieceBytes, '\0');
    in->read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (in->bad()) return Error{Code::io, "the file can not be read to its end"};
    bytes.resize(static_cast<size_t>(in->gcount()));
    return Result<Chunk>{Chunk{std::move(in), std::move(bytes)}};
  }

  const std::shared_ptr<Workers> workers_;
  const Wake wake_;
  const std::unique_ptr<RequestRecord> record_;
  std::unique_ptr<orchestrator::ServiceJob<Chunk>> job_;
  bool has_head_ = false;
};

// A part of a list, newest first: `limit` of them behind the one that `after` names.
template <class T>
Json page_of(const HttpRequest& request, const std::vector<T>& all, Json (*write)(const T&)) {
  size_t limit = 100;
  std::string after;
  for (const auto& [name, value] : query_fields(request.query)) {
    if (name == "after") after = value;
    if (name == "limit") std::from_chars(value.data(), value.data() + value.size(), limit);
  }
  limit = std::clamp<size_t>(limit, 1, 100);
  auto first = all.begin();
  if (!after.empty()) {
    first = std::find_if(all.begin(), all.end(), [&](const T& one) { return one.id == after; });
    if (first != all.end()) ++first;
  }
  Json data = Json::array();
  for (; first != all.end() && data.size() < limit; ++first) data.push_back(write(*first));
  const Json first_id = data.empty() ? Json() : data.front()["id"];
  const Json last_id = data.empty() ? Json() : data.back()["id"];
  return {{"object", "list"},
          {"data", std::move(data)},
          {"first_id", first_id},
          {"last_id", last_id},
          {"has_more", first != all.end()}};
}

Result<StoredFile> store_upload(BatchStore& store, const std::string& owner, const std::string& type,
                                const std::string& body) {
  TRY_ASSIGN(const auto parts, parse_multipart(type, body));
  const FormPart* file = nullptr;
  std::string purpose;
  for (const FormPart& part : parts) {
    if (part.name == "file") file = &part;
    if (part.name == "purpose") purpose = part.content;
  }
  if (!file) return Error{Code::invalid_argument, "file: expected a part of this name, found none"};
  if (purpose != "batch" && purpose != "user_data" && purpose != "assistants") {
    return Error{Code::invalid_argument,
                 "purpose: expected \"batch\", or for collections \"user_data\" or \"assistants\""};
  }
  if (file->filename.size() > kMaxFileNameBytes || !is_valid_utf8(file->filename)) {
    return Error{Code::invalid_argument,
                 "file: expected a name of at most " + std::to_string(kMaxFileNameBytes) + " bytes of UTF-8"};
  }
  return store.add_file(owner, file->filename.empty() ? "batch.jsonl" : file->filename, purpose, file->content);
}

std::unique_ptr<Answer> upload(const BatchDesk& desk, Call call) {
  const auto work = [store = desk.batches, owner = call.request.client, lease = call.request.body_lease,
                     type = std::string(call.request.header("Content-Type")),
                     body = std::make_shared<std::string>(std::move(call.request.body))] {
    return store_upload(*store, owner, type, *body);
  };
  return on_worker<StoredFile>(desk, call, work, [](const StoredFile& file) { return json_response(file_json(file)); });
}

std::unique_ptr<Answer> file_content(const BatchDesk& desk, Call call) {
  return std::make_unique<ContentAnswer>(desk, std::move(call));
}

std::unique_ptr<Answer> list_files(const BatchDesk& desk, Call call) {
  const auto work = [store = desk.batches, request = call.request]() -> Result<Json> {
    auto files = store->files(request.client);
    for (const auto& field : query_fields(request.query)) {
      if (field.first != "purpose") continue;
      std::erase_if(files, [&](const StoredFile& file) { return file.purpose != field.second; });
    }
    return page_of(request, files, file_json);
  };
  return on_worker<Json>(desk, call, work, json_response);
}

std::unique_ptr<Answer> show_file(const BatchDesk& desk, Call call) {
  const auto work = [store = desk.batches, owner = call.request.client, id = call.parameter]() -> Result<Json> {
    const auto found = store->file(owner, id);
    if (!found) return Error{Code::not_found, "there is no file '" + id + "'"};
    return file_json(*found);
  };
  return on_worker<Json>(desk, call, work, json_response);
}

std::unique_ptr<Answer> delete_file(const BatchDesk& desk, Call call) {
  const auto work = [store = desk.batches, owner = call.request.client, id = call.parameter]() -> Result<Ok> {
    TRY(store->remove_file(owner, id));
    return Ok{};
  };
  return on_worker<Ok>(desk, call, work, [id = call.parameter](const Ok&) {
    return json_response(Json{{"id", id}, {"object", "file"}, {"deleted", true}});
  });
}

void read_metadata(JsonFields& fields, Batch& batch) {
  const Json* metadata = fields.find("metadata");
  if (!metadata || metadata->is_null()) return;
  const bool is_good = metadata->is_object() && metadata->size() <= kMaxMetadata &&
                       std::all_of(metadata->begin(), metadata->end(), [](const Json& value) {
                         return value.is_string() && value.get_ref<const std::string&>().size() <= kMaxMetadataBytes;
                       });
  if (!is_good) return fields.fail("metadata", "expected an object of at most 16 texts of at most 512 bytes");
  batch.metadata = metadata->dump();
}

std::unique_ptr<Answer> create_batch(const BatchDesk& desk, Call call, OwnedJson& body) {
  JsonFields fields(body);
  Batch batch;
  batch.owner = call.request.client;
  batch.window = "24h";
  fields.string("input_file_id", batch.input);
  fields.string("endpoint", batch.endpoint);
  fields.string("completion_window", batch.window);
  read_metadata(fields, batch);
  if (batch.input.empty()) fields.fail("input_file_id", "expected the id of an uploaded file, found none");
  if (!is_batch_endpoint(batch.endpoint)) {
    fields.fail("endpoint", "expected /v1/chat/completions, /v1/completions, /v1/responses or /v1/embeddings, found '" +
                                batch.endpoint.substr(0, kMaxMetadataBytes) + "'");
  }
  if (batch.window != "24h") fields.fail("completion_window", "expected \"24h\"");
  if (!fields.ok()) return answer_now(call, error_response(fields.error()));
  const auto work = [store = desk.batches, batch] { return store->create(batch); };
  return on_worker<Batch>(desk, call, work, [](const Batch& made) { return json_response(batch_json(made)); });
}

std::unique_ptr<Answer> cancel_batch(const BatchDesk& desk, Call call) {
  const auto work = [store = desk.batches, owner = call.request.client, id = call.parameter] {
    return store->cancel(owner, id);
  };
  return on_worker<Batch>(desk, call, work, [](const Batch& batch) { return json_response(batch_json(batch)); });
}

std::unique_ptr<Answer> list_batches(const BatchDesk& desk, Call call) {
  const auto work = [store = desk.batches, request = call.request]() -> Result<Json> {
    return page_of(request, store->batches(request.client), batch_json);
  };
  return on_worker<Json>(desk, call, work, json_response);
}

std::unique_ptr<Answer> show_batch(const BatchDesk& desk, Call call) {
  const auto work = [store = desk.batches, owner = call.request.client, id = call.parameter]() -> Result<Json> {
    const auto found = store->batch(owner, id);
    if (!found) return Error{Code::not_found, "there is no batch '" + id + "'"};
    return batch_json(*found);
  };
  return on_worker<Json>(desk, call, work, json_response);
}

}  // namespace

void add_batch_endpoints(Router& router, const BatchDesk& desk) {
  if (!desk.batches) return;
  const auto with = [desk](std::unique_ptr<Answer> (*handler)(const BatchDesk&, Call)) {
    return [desk, handler](Call call) { return handler(desk, std::move(call)); };
  };
  router.add({.method = "GET", .path = "/v1/files", .handler = with(list_files)});
  router.add({.method = "POST", .path = "/v1/files", .handler = with(upload)});
  router.add({.method = "GET", .path = "/v1/files/{id}", .handler = with(show_file)});
  router.add({.method = "DELETE", .path = "/v1/files/{id}", .handler = with(delete_file)});
  router.add({.method = "GET", .path = "/v1/files/{id}/content", .handler = with(file_content)});
  router.add({.method = "GET", .path = "/v1/batches", .handler = with(list_batches)});
  router.add({.method = "POST", .path = "/v1/batches", .handler = [desk](Call call) {
                const auto then = [desk](Call parsed_call, Parsed<OwnedJson>& parsed) {
                  if (const ApiError* error = std::get_if<ApiError>(&parsed)) {
                    return answer_now(parsed_call, error_response(*error));
                  }
                  return create_batch(desk, std::move(parsed_call), std::get<OwnedJson>(parsed));
                };
                return parse_first<Parsed<OwnedJson>>(desk.workers, std::move(call), parse_body, then);
              }});
  // Clients ask again and again whether it has ended.
  router.add({.method = "GET", .path = "/v1/batches/{id}", .handler = with(show_batch), .is_polled = true});
  router.add({.method = "POST", .path = "/v1/batches/{id}/cancel", .handler = with(cancel_batch)});
}

void add_batch_endpoints(Router& router, const Services& services) {
  add_batch_endpoints(router, BatchDesk{services.batches, services.workers});
}

}  // namespace chimere::server
