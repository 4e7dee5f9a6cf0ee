// expert_uses.h  How often the experts of a model were used, kept between two starts: the next one has those in its slots
// from the first token on.
//
//   "CHIMUSE1", u64 number of experts of all layers, then a float for each: uses, faded
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace chimere::cuda {

// `<fingerprint>.experts-used` in the folder.
std::string uses_path(const std::string& folder, uint64_t fingerprint);

// Empty where there is no such file, or it is of another number of experts or damaged: nothing depends on it.
std::vector<float> read_uses(const std::string& path, size_t n_experts);
// Makes the folder where it is not there yet.
Status write_uses(const std::string& path, const std::vector<float>& uses);

}  // namespace chimere::cuda
