// machine_file.h  What was measured of this machine, kept in the data folder between runs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/machine.h"

namespace chimere::apps {

// Empty when there is no data folder.
std::string machine_file();

// Nothing where nothing was kept, or what was kept is of another machine or version of the file.
std::optional<engine::Machine> kept_machine();
Status keep_machine(const engine::Machine& machine);

nlohmann::ordered_json machine_json(const engine::Machine& machine);

// One line of progress on stderr, where that is a terminal; nothing for an empty text but the end of the line.
void show_measuring(const std::string& what);

// What is not known yet of RAM, barriers and the formats, in seconds. True when that was something.
bool measure_missing(engine::Machine& machine, const std::vector<DType>& formats);

}  // namespace chimere::apps
