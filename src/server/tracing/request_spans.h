// request_spans.h  A request that has ended as spans:
//
//   POST /v1/chat/completions          the request
//     queue, prompt, decode            of each answer of the model
//     odo.route, odo.tool, ...         of a run of the orchestrator: its steps, by their stages
//       queue, prompt, decode          of each time that the step asked the model
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "engine/event.h"
#include "orchestrator/chat_chunk.h"
#include "server/tracing/span.h"

namespace chimere::server {

struct TracedRequest {
  using Clock = std::chrono::steady_clock;

  TraceId trace{};
  std::optional<TraceParent> parent;
  std::string id, client, method, path;
  std::string route;  // as the table of routes writes it; empty: none of them
  int status = 0;     // 0: the client left
  Clock::time_point begin{}, end{};
  std::optional<Clock::time_point> first_token;
  engine::Usage usage;
  std::string finish;
  std::vector<orchestrator::ModelTime> answers;
  std::vector<orchestrator::RunReport> runs;
};

// `with_texts`: what steps say about themselves, words of questions and pages among them.
std::vector<Span> request_spans(const TracedRequest& request, bool with_texts);

}  // namespace chimere::server
