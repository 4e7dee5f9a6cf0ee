// kept_responses.h  Answers of /v1/responses that are kept for a while, so that a later request can go on with one
// (`previous_response_id`) or name a part of one (`item_reference`). In memory alone; nobody sees another key's.
#pragma once

#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chimere::server {

class KeptResponses {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr size_t kMaxCount = 512, kMaxBytes = size_t{64} << 20;            // of all
  static constexpr size_t kMaxOwnerCount = 128, kMaxOwnerBytes = size_t{16} << 20;  // of one key

  struct Item {
    std::string id;  // empty: it has none
    std::string json;
  };
  struct Entry {
    std::string id, owner;
    std::vector<Item> items;  // of the whole conversation: what came in, then what was answered
    std::string body;         // the response, as it was sent
    Clock::time_point time;
    size_t n_input = 0;  // of the items: what came in
  };

  // 0: nothing is kept.
  explicit KeptResponses(std::chrono::seconds age) : age_(age) {}

  bool is_on() const { return age_.count() > 0; }
  // The oldest make room. One that is larger than its owner's share is not kept.
  void put(Entry entry);
  // nullopt when there is none, or no longer.
  std::optional<std::vector<Item>> conversation(std::string_view owner, std::string_view id,
                                                Clock::time_point now = Clock::now()) const;
  // What came in of it.
  std::optional<std::vector<Item>> input(std::string_view owner, std::string_view id,
                                         Clock::time_point now = Clock::now()) const;
  std::optional<std::string> item(std::string_view owner, std::string_view id,
                                  Clock::time_point now = Clock::now()) const;
  std::optional<std::string> body(std::string_view owner, std::string_view id,
                                  Clock::time_point now = Clock::now()) const;
  void drop_old(Clock::time_point now = Clock::now());
  bool forget(std::string_view owner, std::string_view id, Clock::time_point now = Clock::now());

 private:
  struct Kept {
    Entry entry;
    size_t bytes = 0;
  };
  bool is_fresh(const Kept& kept, Clock::time_point now) const { return now - kept.entry.time < age_; }
  const Kept* find(std::string_view owner, std::string_view id, Clock::time_point now) const;
  void erase(std::deque<Kept>::iterator kept);

  const std::chrono::seconds age_;
  mutable std::mutex mutex_;
  std::deque<Kept> kept_;  // oldest first
  size_t bytes_ = 0;
};

}  // namespace chimere::server
