// endpoints.cpp  What holds for all endpoints that generate.
#include "server/endpoints.h"

#include <algorithm>

#include "base/hash.h"

namespace chimere::server {

void Services::limit(orchestrator::GenerateOptions& options, const Call& call) const {
  if (request_timeout.count() > 0) {
    options.deadline = std::min(options.deadline, call.record->started() + request_timeout);
  }
  if (!call.request.client.empty()) options.cache_scope = hash64(call.request.client);
}

}  // namespace chimere::server
