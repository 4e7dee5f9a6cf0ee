// engine_for_test.h  What tests of the engine share: the answer to a request, and a hold on the engine's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <utility>
#include <vector>

#include "engine/event.h"

namespace chimere::engine {

struct Answer {
  std::vector<int32_t> ids;
  Event end;
  int32_t cached() const { return end.usage.cached_tokens; }
};

inline Answer collect(Channel<Event>& events) {
  Answer answer;
  while (true) {
    Event e = events.wait();
    if (e.is_terminal()) {
      answer.end = std::move(e);
      return answer;
    }
    answer.ids.push_back(e.token.id);
  }
}

// Holds the engine thread after the first event of a request, so that a test can say something to the engine while the
// request is surely running: what is posted before open() is done before the next step.
class Gate {
 public:
  std::function<void()> hook() {
    return [this, first = true]() mutable {
      if (std::exchange(first, false)) opened_.get_future().wait();
    };
  }
  void open() { opened_.set_value(); }

 private:
  std::promise<void> opened_;
};

}  // namespace chimere::engine
