// reloads.h  Work that a signal asks for, on a thread of its own: reading files and adapters must not hold up requests.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace chimere::apps {

class Reloads {
 public:
  void start(std::function<void()> work);
  // From any thread; what is asked for while the work is under way is done once more behind it.
  void ask();
  // Waits for the work that is under way.
  void stop();

 private:
  std::mutex mutex_;
  std::condition_variable_any asked_;
  bool is_asked_ = false;
  std::jthread thread_;  // ends first: it uses the others
};

}  // namespace chimere::apps
