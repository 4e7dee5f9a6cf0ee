// chat_answer.h  The work behind one chat completion: chunks of the service as pieces of an HTTP answer.
#pragma once

#include <memory>

#include "orchestrator/chat_service.h"
#include "server/chat_response.h"
#include "server/chat_schema.h"
#include "server/http.h"
#include "server/request_record.h"

namespace chimere::server {

// Server-sent events when `call.stream`, one JSON object otherwise. Destroying the answer cancels the request.
std::unique_ptr<Answer> chat_answer(orchestrator::ChatService& service, ChatCall call, Wake wake,
                                    std::unique_ptr<RequestRecord> record);

}  // namespace chimere::server
