#include "odo/approvals.h"

namespace chimere::odo {

std::optional<bool> Approvals::wait(const std::string& id, const std::string& client,
                                    std::chrono::steady_clock::time_point deadline,
                                    const std::function<bool()>& is_cancelled) {
  constexpr std::chrono::milliseconds kLookForCancel{50};
  std::unique_lock lock(mutex_);
  Question& question = questions_[id];
  question.client = client;
  while (!question.answer && !is_cancelled() && std::chrono::steady_clock::now() < deadline) {
    answered_.wait_for(lock, kLookForCancel);
  }
  const std::optional<bool> answer = question.answer;
  questions_.erase(id);
  return answer;
}

bool Approvals::answer(const std::string& id, const std::string& client, bool is_allowed) {
  std::lock_guard lock(mutex_);
  const auto found = questions_.find(id);
  if (found == questions_.end() || found->second.client != client) return false;
  found->second.answer = is_allowed;
  answered_.notify_all();
  return true;
}

}  // namespace chimere::odo
