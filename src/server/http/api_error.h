// api_error.h  Errors as OpenAI clients expect them: {"error":{"message","type","param","code"}}.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "server/http/http.h"

namespace chimere::server {

struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;  // the request field at fault; empty: null
  std::string code;   // a word for programs; empty: null
  // Of a prompt that does not fit into the context: its tokens and the context's; 0: it is another error.
  int n_prompt_tokens = 0;
  int n_ctx = 0;
  int retry_after = 1;  // seconds, of 429 and 503
};

// Programs that shorten their conversations and try again look for these words, and for the code.
ApiError prompt_too_long(int n_prompt_tokens, int n_ctx, std::string param);

// llama.cpp has a type of its own for a prompt that does not fit.
ApiError in_llama_words(ApiError error);

// {"error": {...}}
std::string error_body(const ApiError& error);
HttpResponse error_response(const ApiError& error);

// A message without the folders of this machine: "/srv/tables/x.engram: is damaged" becomes "x.engram: is damaged".
std::string without_folders(std::string_view message);

// What the caller of the API has to know about an error of ours; the log gets the rest.
ApiError to_api_error(const Error& error);

}  // namespace chimere::server
