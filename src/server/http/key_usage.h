// key_usage.h  Tokens that each key has used: today, by UTC, and in all. Kept in a file, so that a budget of a day is not
// given anew by a restart. Used on the I/O thread alone.
//
//   {"day":20774,"keys":{"ann":{"today":[120,80,40],"all":[9000,5000,2100]}}}     prompt, of it cached, generated
//
// The file is written every few seconds while something changes, and at the end: a crash forgets seconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace chimere::server {

struct TokenCounts {
  uint64_t prompt = 0;
  uint64_t cached = 0;  // of the prompt, not computed again
  uint64_t generated = 0;

  TokenCounts& operator+=(const TokenCounts& more) {
    prompt += more.prompt;
    cached += more.cached;
    generated += more.generated;
    return *this;
  }
  // What a budget counts.
  uint64_t computed() const { return prompt - cached + generated; }
};

class KeyUsage {
 public:
  using Clock = std::chrono::system_clock;
  struct Counts {
    TokenCounts today, all;
  };

  // Reads the file when there is one; what is damaged counts as nothing. Empty: counts end with the server.
  explicit KeyUsage(std::string file = {});
  ~KeyUsage();
  KeyUsage(const KeyUsage&) = delete;
  KeyUsage& operator=(const KeyUsage&) = delete;

  void add(const std::string& key, const TokenCounts& tokens, Clock::time_point now = Clock::now());
  Counts of(const std::string& key, Clock::time_point now = Clock::now()) const;
  // By name.
  std::map<std::string, Counts> all(Clock::time_point now = Clock::now()) const;
  // When the counts of today begin again.
  static Clock::time_point next_day(Clock::time_point now);

  // What is to be written, if it is time to; the writing itself is left to another thread.
  std::optional<std::string> text_to_save(Clock::time_point now = Clock::now());
  const std::string& file() const { return file_; }
  static Status save(const std::string& file, const std::string& text);

 private:
  std::string text() const;

  const std::string file_;
  int64_t day_ = 0;  // since 1970, of `today`
  std::map<std::string, Counts> counts_;
  bool is_changed_ = false;
  Clock::time_point saved_;
};

}  // namespace chimere::server
