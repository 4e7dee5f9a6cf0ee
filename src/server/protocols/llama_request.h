// llama_request.h  The body of POST /completion, as clients of llama.cpp's server send it.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orchestrator/chat_request.h"
#include "server/http/json.h"
#include "server/protocols/shared/generate_fields.h"
#include "tokenizer/tokenizer.h"

namespace chimere::server {

struct LlamaCall : CallOptions {
  std::vector<orchestrator::CompletionRequest> prompts;  // alike but for the prompt
  bool is_list = false;                                  // a list of prompts gets a list of answers
  int n_probs = 0;                                       // alternatives beside each token
  bool return_tokens = false;                            // the ids of an answer that is sent whole
  std::vector<std::string> fields;  // of the answer, by their paths ("timings/prompt_n"); empty: all of them
  Json settings;                    // what the answer says of how it was made
};

// The body of POST /infill: the same settings, with the text around a gap.
std::variant<LlamaCall, ApiError> parse_llama_infill(std::string_view body, const orchestrator::Defaults& defaults,
                                                     const Tokenizer& tokenizer);

// How a request is answered, in llama.cpp's names.
Json llama_settings(const orchestrator::CompletionRequest& request);

// The tokenizer reads prompts that are texts and ids in one list, and names what ends an answer.
std::variant<LlamaCall, ApiError> parse_llama_completion(std::string_view body, const orchestrator::Defaults& defaults,
                                                         const Tokenizer& tokenizer);

}  // namespace chimere::server
