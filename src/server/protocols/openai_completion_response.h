// openai_completion_response.h  The JSON of OpenAI's text completions, whole or as server-sent events.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/protocols/shared/answer_json.h"
#include "server/protocols/shared/response_writer.h"

namespace chimere::server {

// `echoes`: what stands before the text of each choice; empty: nothing.
std::unique_ptr<ResponseWriter> completion_writer(ResponseHead head, std::vector<std::string> echoes);

}  // namespace chimere::server
