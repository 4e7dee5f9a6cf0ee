// api_error.h  Errors as OpenAI clients expect them: {"error":{"message","type","param","code"}}.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "server/http.h"

namespace chimere::server {

struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;  // the request field at fault; empty: null
  std::string code;   // a word for programs; empty: null
};

// {"error": {...}}
std::string error_body(const ApiError& error);
HttpResponse error_response(const ApiError& error);

// A message without the folders of this machine: "/srv/tables/x.engram: is damaged" becomes "x.engram: is damaged".
std::string without_folders(std::string_view message);

// What the caller of the API has to know about an error of ours; the log gets the rest.
ApiError to_api_error(const Error& error);

}  // namespace chimere::server
