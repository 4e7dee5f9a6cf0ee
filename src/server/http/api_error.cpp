// api_error.cpp  Error objects, and which status an error of ours becomes.
#include "server/http/api_error.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>

#include "server/http/json.h"
#include "server/http/log.h"

namespace chimere::server {
namespace {

// Files that errors name, whether their folder is absolute or not.
constexpr std::array<std::string_view, 4> kOwnFiles = {".engram", ".gguf", ".passages", ".lock"};

bool is_path(std::string_view word) {
  const size_t slash = word.find('/');
  if (slash == std::string_view::npos) return false;
  if (slash == 0 && word.find('/', 1) != std::string_view::npos) return true;
  while (!word.empty() && (word.back() == ':' || word.back() == ',' || word.back() == '.')) word.remove_suffix(1);
  return std::any_of(kOwnFiles.begin(), kOwnFiles.end(), [&](std::string_view end) { return word.ends_with(end); });
}

}  // namespace

std::string without_folders(std::string_view message) {
  constexpr std::string_view kBetween = " \t\n'\"()[]=";
  std::string out;
  while (!message.empty()) {
    const size_t begin = std::min(message.find_first_not_of(kBetween), message.size());
    out += message.substr(0, begin);
    message.remove_prefix(begin);
    // A name in quotes may have spaces in it.
    const bool is_quoted = !out.empty() && (out.back() == '\'' || out.back() == '"');
    const size_t end = std::min(is_quoted ? message.find(out.back()) : message.find_first_of(kBetween), message.size());
    const std::string_view word = message.substr(0, end);
    out += is_path(word) ? word.substr(word.rfind('/') + 1) : word;
    message.remove_prefix(end);
  }
  return out;
}

ApiError prompt_too_long(int n_prompt_tokens, int n_ctx, std::string param) {
  const std::string message =
      "This model's maximum context length is " + std::to_string(n_ctx) + " tokens. However, you requested " +
      std::to_string(n_prompt_tokens) +
      " tokens in the prompt, which exceeds the available context size. Please reduce its length.";
  return {400, message, "invalid_request_error", std::move(param), "context_length_exceeded", n_prompt_tokens, n_ctx};
}

ApiError in_llama_words(ApiError error) {
  if (error.n_ctx > 0) error.type = "exceed_context_size_error";
  return error;
}

std::string error_body(const ApiError& error) {
  Json body;
  body["error"]["message"] = error.message;
  body["error"]["type"] = error.type;
  body["error"]["param"] = error.param.empty() ? Json(nullptr) : Json(error.param);
  body["error"]["code"] = error.code.empty() ? Json(nullptr) : Json(error.code);
  if (error.n_ctx > 0) {
    body["error"]["n_prompt_tokens"] = error.n_prompt_tokens;
    body["error"]["n_ctx"] = error.n_ctx;
  }
  return to_text(body);
}

HttpResponse error_response(const ApiError& error) {
  HttpResponse response{error.status, {{"Content-Type", "application/json"}}, error_body(error)};
  if (error.status == 401) response.add_header("WWW-Authenticate", "Bearer");
  if (error.status == 429 || error.status == 503) {
    response.add_header("Retry-After", std::to_string(error.retry_after));
  }
  return response;
}

ApiError to_api_error(const Error& error) {
  const std::string message = without_folders(error.message);
  switch (error.code) {
    case Code::invalid_argument:
    case Code::not_found:
    case Code::unsupported: return {400, message, "invalid_request_error", {}, {}};
    case Code::exhausted: return {429, message, "rate_limit_error", {}, "overloaded"};
    case Code::cancelled: return {503, message, "server_error", {}, "cancelled"};
    case Code::corrupt:
    case Code::io:
    case Code::device:
    case Code::internal: break;
  }
  if (message != error.message) spdlog::error("{}", printable(error.message));
  return {500, message, "server_error", {}, code_name(error.code)};
}

}  // namespace chimere::server
