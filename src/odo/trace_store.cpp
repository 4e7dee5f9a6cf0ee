#include "odo/trace_store.h"

#include <algorithm>

namespace chimere::odo {

void TraceStore::keep(Trace trace) {
  std::lock_guard lock(mutex_);
  traces_.push_back(std::move(trace));
  if (traces_.size() > kMaxTraces) traces_.pop_front();
}

std::optional<Trace> TraceStore::find(const std::string& id, const std::string& client) const {
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(traces_.begin(), traces_.end(),
                                  [&](const Trace& t) { return t.run.id == id && t.client == client; });
  return found == traces_.end() ? std::nullopt : std::optional(*found);
}

std::vector<Trace> TraceStore::list(const std::string& client, size_t n) const {
  std::lock_guard lock(mutex_);
  std::vector<Trace> listed;
  for (auto trace = traces_.rbegin(); trace != traces_.rend() && listed.size() < n; ++trace) {
    if (trace->client == client) listed.push_back(*trace);
  }
  return listed;
}

}  // namespace chimere::odo
