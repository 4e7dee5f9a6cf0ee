#include "tools/rpc.h"

#include <algorithm>
#include <climits>

namespace chimere::tools {
namespace {

constexpr size_t kMaxIdBytes = 256;
constexpr size_t kMaxMethodBytes = 256;
constexpr size_t kMaxErrorMessageBytes = 4096;

Error rpc_problem(const std::string& what) { return Error{Code::invalid_argument, "JSON-RPC: " + what}; }

bool is_rpc_id(const Json& id) {
  return id.is_number_integer() || (id.is_string() && id.get_ref<const std::string&>().size() <= kMaxIdBytes);
}

Error line_too_long() {
  return Error{Code::exhausted, "JSON-RPC: a message is longer than " + std::to_string(kMaxRpcBytes) + " bytes"};
}

Json rpc_frame() { return Json{{"jsonrpc", "2.0"}}; }

Result<RpcError> parse_rpc_error(const Json& error) {
  if (!error.is_object() || !error.contains("code") || !error["code"].is_number_integer() ||
      !error.contains("message") || !error["message"].is_string()) {
    return rpc_problem("expected an error with a code and a message");
  }
  const int64_t code = error["code"].is_number_unsigned() && error["code"].get<uint64_t>() > INT_MAX
                           ? INT_MAX
                           : error["code"].get<int64_t>();
  return RpcError{static_cast<int>(std::clamp<int64_t>(code, INT_MIN, INT_MAX)),
                  error["message"].get<std::string>().substr(0, kMaxErrorMessageBytes)};
}

}  // namespace

Result<RpcMessage> parse_rpc(std::string_view text) {
  if (text.size() > kMaxRpcBytes) return line_too_long();
  auto parsed = parse_json(text, {kMaxJsonDepth, 500'000, 20'000'000});
  if (!parsed) return Error{Code::corrupt, "JSON-RPC: " + parsed.error().message};
  Json& json = *parsed;
  if (!json.is_object()) return rpc_problem("expected an object, found " + std::string(json.type_name()));
  const auto version = json.find("jsonrpc");
  if (version == json.end() || *version != "2.0") return rpc_problem("expected \"jsonrpc\" to be \"2.0\"");
  RpcMessage message;
  if (const auto id = json.find("id"); id != json.end() && !id->is_null()) {
    if (!is_rpc_id(*id)) return rpc_problem("expected \"id\" to be an integer or a string");
    message.id = std::move(*id);
  }
  const bool has_result = json.contains("result"), has_error = json.contains("error");
  if (const auto method = json.find("method"); method != json.end()) {
    if (!method->is_string() || method->get_ref<const std::string&>().empty() ||
        method->get_ref<const std::string&>().size() > kMaxMethodBytes) {
      return rpc_problem("expected \"method\" to be a name");
    }
    if (has_result || has_error) return rpc_problem("a request has a result");
    message.method = method->get<std::string>();
    if (const auto params = json.find("params"); params != json.end() && !params->is_null()) {
      if (!params->is_object()) return rpc_problem("expected \"params\" to be an object");
      message.params = std::move(*params);
    }
    return Result<RpcMessage>{std::move(message)};
  }
  if (has_result == has_error) return rpc_problem("expected a method, a result or an error");
  if (has_result) {
    if (message.id.is_null()) return rpc_problem("a result has no \"id\"");
    message.result = std::move(json["result"]);
  } else {
    TRY_ASSIGN(message.error, parse_rpc_error(json["error"]));
  }
  return Result<RpcMessage>{std::move(message)};
}

std::string rpc_request(const Json& id, const std::string& method, Json params) {
  Json json = rpc_frame();
  json["id"] = id;
  json["method"] = method;
  if (!params.is_null()) json["params"] = std::move(params);
  return to_text(json);
}

std::string rpc_notification(const std::string& method, Json params) {
  Json json = rpc_frame();
  json["method"] = method;
  if (!params.is_null()) json["params"] = std::move(params);
  return to_text(json);
}

std::string rpc_result(const Json& id, Json result) {
  Json json = rpc_frame();
  json["id"] = id;
  json["result"] = std::move(result);
  return to_text(json);
}

std::string rpc_failure(const Json& id, int code, const std::string& message) {
  Json json = rpc_frame();
  json["id"] = id;
  json["error"] = Json{{"code", code}, {"message", message}};
  return to_text(json);
}

Status LineFrames::push(std::string_view bytes, const std::function<void(std::string_view)>& take) {
  for (size_t end; (end = bytes.find('\n')) != std::string_view::npos; bytes.remove_prefix(end + 1)) {
    std::string_view line = bytes.substr(0, end);
    if (line_.size() + line.size() > kMaxRpcBytes) return line_too_long();
    if (!line_.empty()) line = line_.append(line);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty()) take(line);
    line_.clear();
  }
  if (line_.size() + bytes.size() > kMaxRpcBytes) return line_too_long();
  line_.append(bytes);
  return Ok{};
}

Status EventFrames::push(std::string_view bytes, const std::function<void(std::string_view)>& take) {
  while (!bytes.empty()) {
    if (was_return_ && bytes[0] == '\n') bytes.remove_prefix(1);
    was_return_ = false;
    const size_t end = bytes.find_first_of("\r\n");
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() + data_.size() + piece.size() > kMaxRpcBytes) return line_too_long();
    line_.append(piece);
    if (end == std::string_view::npos) return Ok{};
    was_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    take_line(line_, take);
    line_.clear();
  }
  return Ok{};
}

void EventFrames::take_line(std::string_view line, const std::function<void(std::string_view)>& take) {
  if (line.empty()) {
    if (has_data_ && !data_.empty()) take(data_);
    data_.clear();
    has_data_ = false;
    return;
  }
  constexpr std::string_view kData = "data:";
  if (line.substr(0, kData.size()) != kData) return;  // a comment, or a field that says nothing to us
  line.remove_prefix(kData.size());
  if (!line.empty() && line[0] == ' ') line.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_.append(line);
  has_data_ = true;
}

}  // namespace chimere::tools
