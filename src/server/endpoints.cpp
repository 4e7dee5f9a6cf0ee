// endpoints.cpp  What holds for all endpoints that generate.
#include "server/endpoints.h"

#include <algorithm>

#include "base/hash.h"

namespace chimere::server {

void Services::limit(orchestrator::GenerateOptions& options, const Call& call) const {
  if (request_timeout.count() > 0) {
    options.deadline = std::min(options.deadline, call.record->started() + request_timeout);
  }
  options.owner = options.cache_scope = owner_of(call);
}

uint64_t Services::owner_of(const Call& call) { return call.request.client.empty() ? 0 : hash64(call.request.client); }

orchestrator::Embedder& Services::embedder_for(std::string_view model) const {
  return names.chat_embeds && names.embeds_by_chat(model) ? chat.embedder() : embedder;
}

std::string Services::system_fingerprint() const {
  constexpr char kHex[] = "0123456789abcdef";
  uint64_t hash = hash64(std::to_string(chat.embedder().model_fingerprint()) + " " + version);
  std::string text = "fp_";
  for (int i = 0; i < 10; ++i, hash >>= 4) text += kHex[hash & 15];
  return text;
}

}  // namespace chimere::server
