// pacer.h  No site is asked again before a pause is over.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "web/context.h"

namespace chimere::web {

class Pacer {
 public:
  explicit Pacer(std::chrono::milliseconds pause) : pause_(pause) {}

  // Waits for our turn with this host. Any thread; turns are given in the order of the calls. An error when cancelled,
  // or when our turn comes after the deadline: then it is not taken.
  Status wait(const std::string& host, const WebContext& context);

 private:
  using Clock = WebContext::Clock;

  const std::chrono::milliseconds pause_;
  std::mutex mutex_;
  std::map<std::string, Clock::time_point> next_;  // hosts whose pause is not over
};

}  // namespace chimere::web
