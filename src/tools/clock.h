// clock.h  The tool "clock": what time it is, and arithmetic with dates.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "tools/tool.h"

namespace chimere::tools {

struct ClockOptions {
  std::function<std::chrono::system_clock::time_point()> now = [] { return std::chrono::system_clock::now(); };
  std::string zone_folder = "/usr/share/zoneinfo";
  std::string local_zone = "/etc/localtime";  // where a call names no zone; UTC where there is no such file
};

std::shared_ptr<Tool> make_clock(ClockOptions options = {});

}  // namespace chimere::tools
