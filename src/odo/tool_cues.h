// tool_cues.h  Which tools a question sounds like. A tool that is offered costs tokens and can lead a small model astray,
// so that a greeting should see none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chimere::odo {

// Of `tools` those whose words or signs the question has, in English and French. A tool without cues is never among
// them.
std::vector<std::string> cued_tools(std::string_view question, const std::vector<std::string>& tools);

}  // namespace chimere::odo
