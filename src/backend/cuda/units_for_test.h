// Sizes of memory as tests of this folder write them.
#pragma once

#include <cstdint>

namespace chimere::cuda {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;

}  // namespace chimere::cuda
