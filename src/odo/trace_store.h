// trace_store.h  What ran for the last answers, to be looked at by whoever asked for them.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/chat_chunk.h"

namespace chimere::odo {

struct Trace {
  orchestrator::RunReport run;
  std::string client;  // who asked; only they see it
  std::string model;   // as it was asked for
  int64_t began = 0;   // seconds since 1970
  double ms = 0;
  engine::Usage usage;
  std::string finish;  // "stop", ..., or the error's message
};

class TraceStore {
 public:
  static constexpr size_t kMaxTraces = 256;

  void keep(Trace trace);
  std::optional<Trace> find(const std::string& id, const std::string& client) const;
  // The client's, latest first.
  std::vector<Trace> list(const std::string& client, size_t n) const;

 private:
  mutable std::mutex mutex_;
  std::deque<Trace> traces_;  // oldest first
};

}  // namespace chimere::odo
