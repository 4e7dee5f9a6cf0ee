// pacer.cpp  Turns of hosts.
#include "web/pacer.h"

#include <thread>

namespace chimere::web {

Status Pacer::wait(const std::string& host, const WebContext& context) {
  TRY(context.check("waiting for our turn"));
  Clock::time_point turn = Clock::now();
  {
    std::lock_guard lock(mutex_);
    for (auto it = next_.begin(); it != next_.end();) it = it->second <= turn ? next_.erase(it) : std::next(it);
    if (const auto at = next_.find(host); at != next_.end()) turn = at->second;
    if (turn >= context.deadline) {
      return Error{Code::exhausted, "\"" + host + "\" was asked a moment ago, and our next turn comes too late"};
    }
    if (pause_.count() > 0) next_[host] = turn + pause_;
  }
  while (Clock::now() < turn) {
    TRY(context.check("waiting for our turn"));
    std::this_thread::sleep_for(std::min<Clock::duration>(turn - Clock::now(), std::chrono::milliseconds(10)));
  }
  return Ok{};
}

}  // namespace chimere::web
