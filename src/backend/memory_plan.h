// memory_plan.h  What a program will take on a backend and where it will lie, from shapes alone: nothing is read, packed or
// allocated for good. A backend plans with the functions that it loads with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace chimere {

//   card  its memory
//   ram   the host's, as the backend stores it
//   file  the mapped file: rows of a table that are looked up
enum class Tier { card, ram, file };

struct MemoryPlan {
  struct Matrix {
    Tier tier = Tier::ram;
    uint64_t bytes = 0;       // as it is stored there
    bool is_brought = false;  // from RAM to the card, for every pass
  };

  std::vector<Matrix> matrices;  // by MatrixId
  int n_mixtures = 0;            // layers with routed experts
  int n_hosted = 0;              // with a card: of these, those whose experts are in RAM
  bool card_reads = false;       // these experts, over the bus, and has a slot for n_slots of each layer's
  int n_slots = 0;
  uint64_t slot_bytes = 0;     // of all layers
  uint64_t mapped_bytes = 0;   // on the card for all this: slots, and where experts are brought for prompts
  int n_layers = 0;            // with a card: that may be in RAM
  int n_layers_in_ram = 0;     // of these, those whose other weights are there
  uint64_t brought_bytes = 0;  // on the card, for what is brought of them
  // With a card: not all weights are there.
  bool is_partly_in_ram() const {
    return !card.empty() &&
           std::any_of(matrices.begin(), matrices.end(), [](const Matrix& m) { return m.tier != Tier::card; });
  }
  int max_rows = 0, prefill_rows = 0;
  uint64_t working_bytes = 0;  // where the trunk is computed: activations, and on a card what steps are given
  // With a card alone:
  uint64_t context_bytes = 0;  // the driver's own
  uint64_t budget_bytes = 0;
  std::string card;  // its name; empty: there is none
  std::string text;  // where everything goes and why
};

namespace cpu {
Result<MemoryPlan> plan_memory(const Program& program, const LoadOptions& options);
}
// In builds with CUDA alone (CHIMERE_HAS_CUDA). more_bytes: as if the card had so much more memory, or less.
namespace cuda {
Result<MemoryPlan> plan_memory(const Program& program, const LoadOptions& options, int64_t more_bytes = 0);
}

}  // namespace chimere
