// adapters.h  LoRA adapters for checks on a machine that has no others: random ones of any model, and those that
// --adapter names.
#pragma once

#include <cstdint>
#include <string>

#include "backend/adapter.h"
#include "models/model.h"

namespace chimere {

// Writes an adapter with random values for every matrix of the model that can have one: large enough to change what it
// says, small enough not to drown it.
Status write_random_adapter(const std::string& model_path, int rank, uint64_t seed, const std::string& out);

// FILE or FILE=SCALE; no uses for an empty text.
Result<AdapterSet> adapter_argument(const std::string& text, models::Model& model);

}  // namespace chimere
