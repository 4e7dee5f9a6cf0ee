// expectation.h  How fast a model is expected to be here, said when it is loaded: from figures of this machine that were
// kept. Where there are none, or none of a format that the model has, nothing is said.
#pragma once

#include <optional>
#include <string>

#include "backend/backend.h"
#include "engine/forecast.h"
#include "engine/machine.h"

namespace chimere::engine {

// A forecast by these figures, without what guesses gain. Nothing where figures are missing, or the model has no place.
std::optional<Forecast> expected(const Program& program, const LoadOptions& options, bool on_card,
                                 const Machine& machine);

// "expected: 61.3 tokens a second for one answer, 55.0 at the end of the context". Empty where the speed is not known.
std::string expectation_text(const Forecast& forecast);

// Why the CPU should compute although a card could, its layers in RAM coming over the bus; empty where the card should.
std::string better_on_cpu(const Forecast& on_card, const Forecast& on_cpu);

}  // namespace chimere::engine
