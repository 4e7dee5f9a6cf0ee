// philox.h  Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3".
//
// A pure function of (key, counter): no state to carry, clone or roll back, so that a draw depends on what it is for
// and not on how many draws came before it. Integer arithmetic only: every machine and device computes the same bits.
#pragma once

#include <array>
#include <cstdint>

namespace chimere {

inline constexpr int kPhiloxRounds = 10;
inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53u;
inline constexpr std::uint32_t kPhiloxMultiplier1 = 0xCD9E8D57u;
inline constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9u;
inline constexpr std::uint32_t kPhiloxWeyl1 = 0xBB67AE85u;

using PhiloxWords = std::array<std::uint32_t, 4>;

constexpr PhiloxWords philox4x32(PhiloxWords counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t a = static_cast<std::uint64_t>(kPhiloxMultiplier0) * counter[0];
    const std::uint64_t b = static_cast<std::uint64_t>(kPhiloxMultiplier1) * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(a)};
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  return counter;
}

// The layout every caller shares: key = seed, counter = (choice, position), low word first.
constexpr PhiloxWords philox(std::uint64_t seed, std::uint64_t position, std::uint64_t choice) {
  return philox4x32({static_cast<std::uint32_t>(choice), static_cast<std::uint32_t>(choice >> 32),
                     static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32)},
                    static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}

}  // namespace chimere
