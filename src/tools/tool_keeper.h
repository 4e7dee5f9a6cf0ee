// tool_keeper.h  A thread that looks now and then whether tools have changed: servers that say so or were started again,
// files of a folder.
#pragma once

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "tools/tool.h"

namespace chimere::tools {

class ToolKeeper {
 public:
  // Each is called on the keeper's thread, one after the other, every `pause`; it gives up when its context says so.
  using Look = std::function<void(const ToolContext& context)>;

  // What the looks use outlives the keeper.
  explicit ToolKeeper(std::vector<Look> looks, std::chrono::milliseconds pause = std::chrono::seconds(1));
  // Ends a look that is under way.
  ~ToolKeeper() = default;

 private:
  std::jthread thread_;
};

}  // namespace chimere::tools
