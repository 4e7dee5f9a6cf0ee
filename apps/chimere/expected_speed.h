// expected_speed.h  What a load says of how fast the model will be: from figures that `chimere doctor` or `chimere plan` has
// kept, so that a start waits for no measurement.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace chimere::apps {

// For LoadOptions::before_load: writes the words to `said` (engine/expectation.h). chooses: the backend is ours to choose, so
// that a load for the card fails as exhausted where the CPU should compute.
void expect_speed(LoadOptions& options, bool chooses, std::shared_ptr<std::string> said);

}  // namespace chimere::apps
