// stop_strings.h  Ends an answer at the first of some strings, in a stream whose pieces may cut them anywhere.
//
// Text that could still become a stop string is held back; no byte of one is ever let through.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chimere::orchestrator {

class StopStrings {
 public:
  // Empty strings are ignored: they would stop everything.
  explicit StopStrings(std::vector<std::string> stops = {});

  // The text that is certain to be no part of a stop string. After a hit everything is swallowed.
  std::string push(std::string_view text);
  // What was held back, once it is known that nothing follows.
  std::string finish();

  bool hit() const { return hit_; }
  const std::string& matched() const { return matched_; }  // the stop string that was found

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::string matched_;
  bool hit_ = false;
};

}  // namespace chimere::orchestrator
