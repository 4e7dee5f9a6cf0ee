// generation_answer.h  The work behind one generated answer, whatever its protocol: chunks of the service as pieces of
// an HTTP answer.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "orchestrator/answer_stream.h"
#include "server/http/http.h"
#include "server/http/request_record.h"
#include "server/http/workers.h"
#include "server/protocols/shared/generate_fields.h"
#include "server/protocols/shared/response_writer.h"

namespace chimere::server {

struct Generation {
  std::vector<std::unique_ptr<orchestrator::AnswerStream>> choices;  // those of one prompt stand together
  size_t choices_per_prompt = 1;
  std::shared_ptr<ResponseWriter> writer;
  bool stream = false;
  std::vector<std::string> ignored;       // field names for X-Chimere-Ignored
  std::string model;                      // the one that answers, for X-Chimere-Model
  int context_length = 0;                 // of that model, for the error of a prompt that does not fit
  const char* prompt_field = "messages";  // the field that it came in, for the same
  std::shared_ptr<BodyLease> body_lease;  // of the request's text, which is needed until its prompt is made
  std::shared_ptr<Workers> workers;       // write an answer that is large
  Wake wake;
  std::chrono::milliseconds longest_silence{0};  // of a stream, until it sends its head, or a comment
};

// The events of the writer when `stream`, one JSON object otherwise. Destroying the answer cancels what still runs.
std::unique_ptr<Answer> generation_answer(Generation generation, std::unique_ptr<RequestRecord> record);

}  // namespace chimere::server
