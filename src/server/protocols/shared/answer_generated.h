// answer_generated.h  What endpoints that generate have in common: who asked, and the answer of what was started.
#pragma once

#include <memory>

#include "server/endpoints.h"
#include "server/protocols/shared/generation_answer.h"

namespace chimere::server {

// REQUIRES: `generation` has its choices and its writer.
std::unique_ptr<Answer> answer_generated(const Services& services, Call& call, CallOptions options,
                                         Generation generation);

}  // namespace chimere::server
