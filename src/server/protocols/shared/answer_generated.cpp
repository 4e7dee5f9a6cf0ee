#include "server/protocols/shared/answer_generated.h"

#include <utility>

#include "server/protocols/shared/engram_field.h"

namespace chimere::server {

std::unique_ptr<Answer> answer_generated(const Services& services, Call& call, CallOptions options,
                                         Generation generation) {
  call.record->set_owner(memory_owner(call.request.client, options.user));
  call.record->set_user(std::move(options.user));
  generation.stream = options.stream;
  generation.body_lease = std::move(call.request.body_lease);
  generation.workers = services.workers;
  generation.wake = call.wake;
  generation.longest_silence = services.longest_silence;
  generation.ignored = std::move(options.ignored);
  generation.model = model_header(services.names.chat);
  generation.context_length = services.chat.context_length();
  return generation_answer(std::move(generation), std::move(call.record));
}

}  // namespace chimere::server
