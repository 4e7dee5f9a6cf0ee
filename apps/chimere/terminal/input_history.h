// input_history.h  What was typed in earlier conversations, kept in a file of the user alone.
//
// The file has one JSON string a line and is only appended to, so that several programs may run at a time; when it has
// grown to twice its size, the older half is left out.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace chimere::apps {

class InputHistory {
 public:
  static constexpr size_t kMaxEntries = 1000;

  // In memory alone when `path` is empty. A file that is not there is empty; what is damaged in one is passed over.
  explicit InputHistory(std::string path);

  const std::vector<std::string>& entries() const { return entries_; }  // oldest first
  // An error when it could not be kept; it can be brought back in this run all the same.
  Status add(const std::string& text);

 private:
  Status write(const std::vector<std::string>& entries, bool anew) const;

  std::string path_;
  std::vector<std::string> entries_;
};

}  // namespace chimere::apps
