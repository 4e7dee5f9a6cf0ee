// responses_response.h  Answers of /v1/responses: output items, whole or as numbered events.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/response_writer.h"

namespace chimere::server {

// `echo`: see ResponsesCall.
std::unique_ptr<ResponseWriter> responses_writer(std::string model, int64_t created, const std::string& echo,
                                                 bool logprobs, bool token_stats = false);

}  // namespace chimere::server
