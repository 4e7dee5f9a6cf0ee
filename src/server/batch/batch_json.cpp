// batch_json.cpp  Written and read field by field.
#include "server/batch/batch_json.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace chimere::server {
namespace {

constexpr const char* kStatuses[] = {"validating", "in_progress", "cancelling", "completed",
                                     "failed",     "cancelled",   "expired"};

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json or_null(int64_t time) { return time == 0 ? Json() : Json(time); }

std::string text_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t number_in(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_integer() ? std::max<int64_t>(found->get<int64_t>(), 0) : 0;
}

}  // namespace

Json file_json(const StoredFile& file) {
  return {{"id", file.id},         {"object", "file"},        {"bytes", file.bytes},  {"created_at", file.created},
          {"filename", file.name}, {"purpose", file.purpose}, {"status", "processed"}};
}

std::optional<StoredFile> file_from(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  StoredFile file{text_in(json, "id"), text_in(json, "filename"), text_in(json, "purpose"), 0,
                  number_in(json, "created_at")};
  return file.id.empty() ? std::nullopt : std::optional(std::move(file));
}

Json batch_json(const Batch& batch) {
  const auto ended_as = [&](const char* status) { return or_null(batch.status == status ? batch.ended : 0); };
  Json errors;
  if (!batch.problem.empty()) {
    errors = {{"object", "list"},
              {"data",
               {{{"code", "invalid_input"},
                 {"message", batch.problem},
                 {"line", batch.problem_line > 0 ? Json(batch.problem_line) : Json()},
                 {"param", nullptr}}}}};
  }
  const auto metadata = parse_json(batch.metadata);
  return {{"id", batch.id},
          {"object", "batch"},
          {"endpoint", batch.endpoint},
          {"errors", std::move(errors)},
          {"input_file_id", batch.input},
          {"completion_window", batch.window},
          {"status", batch.status},
          {"output_file_id", or_null(batch.output)},
          {"error_file_id", or_null(batch.errors)},
          {"created_at", batch.created},
          {"in_progress_at", or_null(batch.started)},
          {"expires_at", or_null(batch.expires)},
          {"finalizing_at", ended_as("completed")},
          {"completed_at", ended_as("completed")},
          {"failed_at", ended_as("failed")},
          {"expired_at", ended_as("expired")},
          {"cancelling_at", or_null(batch.cancelling)},
          {"cancelled_at", ended_as("cancelled")},
          {"request_counts", {{"total", batch.total}, {"completed", batch.completed}, {"failed", batch.failed}}},
          {"metadata", metadata ? *metadata : Json()}};
}

std::optional<Batch> batch_from(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  Batch batch;
  batch.id = text_in(json, "id");
  batch.endpoint = text_in(json, "endpoint");
  batch.input = text_in(json, "input_file_id");
  batch.output = text_in(json, "output_file_id");
  batch.errors = text_in(json, "error_file_id");
  batch.status = text_in(json, "status");
  batch.window = text_in(json, "completion_window");
  batch.created = number_in(json, "created_at");
  batch.expires = number_in(json, "expires_at");
  batch.started = number_in(json, "in_progress_at");
  batch.cancelling = number_in(json, "cancelling_at");
  for (const char* end : {"completed_at", "failed_at", "cancelled_at", "expired_at"}) {
    batch.ended = std::max(batch.ended, number_in(json, end));
  }
  if (const auto metadata = json.find("metadata"); metadata != json.end()) batch.metadata = metadata->dump();
  if (const auto counts = json.find("request_counts"); counts != json.end() && counts->is_object()) {
    batch.total = static_cast<uint64_t>(number_in(*counts, "total"));
    batch.completed = static_cast<uint64_t>(number_in(*counts, "completed"));
    batch.failed = static_cast<uint64_t>(number_in(*counts, "failed"));
  }
  if (const auto errors = json.find("errors"); errors != json.end() && errors->is_object()) {
    const auto data = errors->find("data");
    if (data != errors->end() && data->is_array() && !data->empty() && (*data)[0].is_object()) {
      batch.problem = text_in((*data)[0], "message");
      batch.problem_line = static_cast<int>(number_in((*data)[0], "line"));
    }
  }
  const bool is_known =
      std::find(std::begin(kStatuses), std::end(kStatuses), std::string_view(batch.status)) != std::end(kStatuses);
  if (batch.id.empty() || !is_known || !is_batch_endpoint(batch.endpoint)) return std::nullopt;
  return batch;
}

}  // namespace chimere::server
