// contract.h  The numbers contract of backend/ops.h and drawing, checked on a model and whatever backend it runs on:
// what a card must keep can only be seen on a card.
#pragma once

#include <cstdint>
#include <span>

#include "backend/adapter.h"
#include "models/model.h"

namespace chimere {

// Runs pieces of the tokens alone, together, rolled back and restored, and compares bits; draws where the backend can
// and compares with the host's sampler. Prints a line a check. Fails when one does.
// With adapters (null: none), some of the sequences have them and the others do not. REQUIRES: at least 60 tokens.
Status check_contract(models::Model& model, std::span<const int32_t> tokens, const AdapterSet* adapters);

}  // namespace chimere
