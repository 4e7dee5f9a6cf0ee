// forecast.h  What a model will take on a machine and how fast it will be, from the file's header and the machine's figures.
//
// Memory is what the backends say they will allocate (backend/memory_plan.h). A decoded token reads each weight once, of
// the routed experts those that are chosen, so its time is bytes over speed, tier by tier:
//   CPU   packed bytes / product speed of their format, from the caches where they all fit there; the states at the speed
//         of memory; a barrier for each phase of an op
//   card  bytes / copy bandwidth, and a time for each op that is all launches (kCardOpSeconds)
//   card  layers in RAM: all of that, or bytes / bandwidth of the bus, whichever takes longer
//   disk  experts beyond the RAM budget: uniform routing, so that the share that lies on disk is the share that is read
// A prompt's time on the CPU is its arithmetic over the product speed of the format, and a share for all else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/memory_plan.h"
#include "base/result.h"
#include "engine/machine.h"
#include "models/model.h"

namespace chimere::engine {

struct ForecastPart {
  std::string role;
  Tier tier = Tier::ram;
  int n_tensors = 0;
  uint64_t bytes = 0;      // as stored
  double token_bytes = 0;  // of them, read for a decoded token
};

struct Forecast {
  MemoryPlan memory;
  std::vector<ForecastPart> parts;  // by role and tier
  uint64_t kv_bytes = 0;            // of all sequences
  uint64_t recurrent_bytes = 0;
  uint64_t card_bytes = 0;  // all that is on the card, with states
  uint64_t ram_bytes = 0;   // all that would be in RAM were there no budget; with a card its experts alone
  uint64_t ram_budget_bytes = 0;
  uint64_t disk_bytes = 0;       // of the experts, what is read from disk when it is chosen
  double token_bytes = 0;        // that a decoded token reads and writes, at an empty context
  double decode_tok_s = 0;       // one sequence, at an empty context
  double decode_full_tok_s = 0;  // at the end of the context
  double prompt_tok_s = 0;       // 0: not known
};

struct ForecastOptions {
  models::BackendKind backend = models::BackendKind::cpu;
  LoadOptions load;             // context_tokens are those of the states
  int n_sequences = 1;          // whose states are counted: load.n_sequences have room kept for them
  uint64_t ram_bytes = 0;       // of weights, working memory and states; 0: any
  int64_t more_card_bytes = 0;  // than there is
};

// The formats of weights that it has to know the speed of.
std::vector<DType> cpu_formats(const Program& program);

// Fails where the model has no place, with what is missing.
Result<Forecast> forecast(const Program& program, const ForecastOptions& options, const Machine& machine);

// The same of what models::Model then loads: without the file's draft pass where LoadOptions::drafts_need_room leaves it out.
Result<Forecast> forecast_of_load(const Program& program, const ForecastOptions& options, const Machine& machine);

}  // namespace chimere::engine
