// api_error.cpp  Error objects, and which status an error of ours becomes.
#include "server/api_error.h"

#include "server/json.h"

namespace chimere::server {

std::string error_body(const ApiError& error) {
  Json body;
  body["error"]["message"] = error.message;
  body["error"]["type"] = error.type;
  body["error"]["param"] = error.param.empty() ? Json(nullptr) : Json(error.param);
  body["error"]["code"] = error.code.empty() ? Json(nullptr) : Json(error.code);
  return to_text(body);
}

HttpResponse error_response(const ApiError& error) {
  HttpResponse response{error.status, {{"Content-Type", "application/json"}}, error_body(error)};
  if (error.status == 401) response.add_header("WWW-Authenticate", "Bearer");
  if (error.status == 429 || error.status == 503) response.add_header("Retry-After", "1");
  return response;
}

ApiError to_api_error(const Error& error) {
  switch (error.code) {
    case Code::invalid_argument:
    case Code::not_found:
    case Code::unsupported: return {400, error.message, "invalid_request_error", {}, {}};
    case Code::exhausted: return {429, error.message, "rate_limit_error", {}, "overloaded"};
    case Code::cancelled: return {503, error.message, "server_error", {}, "cancelled"};
    case Code::corrupt:
    case Code::io:
    case Code::device:
    case Code::internal: break;
  }
  return {500, error.message, "server_error", {}, code_name(error.code)};
}

}  // namespace chimere::server
