// openai_chat_response.h  The JSON of OpenAI's chat completions, whole or as server-sent events.
#pragma once

#include <memory>

#include "server/protocols/shared/answer_json.h"
#include "server/protocols/shared/response_writer.h"

namespace chimere::server {

std::unique_ptr<ResponseWriter> chat_writer(ResponseHead head);

}  // namespace chimere::server
