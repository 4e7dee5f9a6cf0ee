// top_view.h  What `chimere top` shows of a server: lines for a screen, from what the server says of itself.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace chimere::apps {

// Bodies of the server's answers.
struct TopFacts {
  std::string status;    // GET /v1/status
  std::string requests;  // GET /v1/requests
  std::string metrics;   // GET /metrics
};

// As many lines as there is something to say, each cut to `columns`; 0: any length. `rows`: of the screen; requests that
// do not fit are counted in the last line; 0: any number. Nothing in it can steer a terminal.
Result<std::vector<std::string>> top_lines(const TopFacts& facts, int columns, int rows);

}  // namespace chimere::apps
