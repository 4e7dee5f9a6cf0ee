// recent_answers.h  What the last requests were answered, so that their clients can say which answers were good. Used
// on the I/O thread alone.
#pragma once

#include <deque>
#include <string>
#include <string_view>

namespace chimere::server {

class RecentAnswers {
 public:
  static constexpr size_t kMaxAnswers = 256;
  static constexpr size_t kMaxBytes = size_t{64} << 10;  // of one; a longer one is not kept

  void put(std::string request_id, std::string owner, std::string text) {
    if (request_id.empty() || text.empty() || text.size() > kMaxBytes) return;
    if (answers_.size() >= kMaxAnswers) answers_.pop_front();
    answers_.push_back({std::move(request_id), std::move(owner), std::move(text)});
  }
  // The latest of that name and owner; null when there is none. Nobody learns of another's answers.
  const std::string* find(std::string_view request_id, std::string_view owner) const {
    for (auto answer = answers_.rbegin(); answer != answers_.rend(); ++answer) {
      if (answer->request_id == request_id && answer->owner == owner) return &answer->text;
    }
    return nullptr;
  }

 private:
  struct Answer {
    std::string request_id, owner, text;
  };
  std::deque<Answer> answers_;  // oldest first
};

}  // namespace chimere::server
