// approvals.h  Tool calls that wait for a person's word.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace chimere::odo {

class Approvals {
 public:
  // Waits for the client's word about `id`; nullopt when none came in time, or when it is no longer wanted.
  std::optional<bool> wait(const std::string& id, const std::string& client,
                           std::chrono::steady_clock::time_point deadline, const std::function<bool()>& is_cancelled);
  // False when nothing of that client waits under that id.
  bool answer(const std::string& id, const std::string& client, bool is_allowed);

 private:
  struct Question {
    std::string client;
    std::optional<bool> answer;
  };
  std::mutex mutex_;
  std::condition_variable answered_;
  std::map<std::string, Question> questions_;
};

}  // namespace chimere::odo
