// protocols_for_test.h  What the tests of the protocols share: a body that must be taken or refused, and an answer in
// chunks.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "orchestrator/chat_chunk.h"
#include "server/http/api_error.h"
#include "server/http/json.h"
#include "server/protocols/shared/response_writer.h"

namespace chimere::server {

template <class Call>
Call accepted(std::variant<Call, ApiError> parsed) {
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) {
    ADD_FAILURE() << error->message;
    return {};
  }
  return std::move(std::get<Call>(parsed));
}

template <class Call>
std::string refused_param(const std::variant<Call, ApiError>& parsed) {
  const ApiError* error = std::get_if<ApiError>(&parsed);
  return error && error->status == 400 ? error->param : "accepted";
}

// A thought, a text and two calls, in pieces.
inline std::vector<orchestrator::ChatChunk> chunks() {
  std::vector<orchestrator::ChatChunk> list(5);
  list[0].kind = orchestrator::ChatChunk::Kind::started;
  list[0].usage.prompt_tokens = 10;
  list[1].reasoning = "hm";
  list[2].content = "Let";
  list[3].content = " me";
  list[3].tool_calls = {{0, "call_a", "f", "{\"x\""}, {0, "", "", ":1}"}, {1, "call_b", "g", "{}"}};
  list[4].kind = orchestrator::ChatChunk::Kind::finished;
  list[4].finish = orchestrator::Finish::tool_calls;
  list[4].usage.prompt_tokens = 10;
  list[4].usage.cached_tokens = 4;
  list[4].usage.completion_tokens = 6;
  return list;
}

struct Written {
  std::vector<Json> events;
  Json whole;
};

inline Written write(ResponseWriter& streamed, ResponseWriter& whole) {
  std::string text;
  orchestrator::ChatChunk sum;
  for (const orchestrator::ChatChunk& chunk : chunks()) {
    text += streamed.events(0, chunk);
    append(sum, chunk);
  }
  text += streamed.end(sum.usage);
  Written written;
  for (size_t at = text.find("data: "); at != std::string::npos; at = text.find("data: ", at + 1)) {
    auto json = parse_json(text.substr(at + 6, text.find('\n', at) - at - 6));
    if (json) written.events.push_back(std::move(*json));
  }
  if (auto json = parse_json(whole.body({sum}, sum.usage))) written.whole = std::move(*json);
  return written;
}

inline std::vector<std::string> types_of(const std::vector<Json>& events) {
  std::vector<std::string> types;
  for (const Json& event : events) types.push_back(event.value("type", ""));
  return types;
}

}  // namespace chimere::server
