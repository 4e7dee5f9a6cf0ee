// cpu_features.h  Which instruction set the kernels use: found once at start, overridable by tests.
#pragma once

#include <span>
#include <string_view>

namespace chimere::cpu {

// In rising order of each architecture: a machine that has one has all before it that its build contains. avx512 means F,
// BW, VL and DQ. neon is any arm64; dotprod has products of four signed bytes, i8mm those of unsigned by signed ones.
enum class Isa { scalar, avx2, avx512, avx512vnni, neon, dotprod, i8mm };

std::string_view name(Isa isa);

// The best level of this machine that the build contains.
Isa detect_isa();

// The level in use: detect_isa() unless a test forced another.
Isa active_isa();

// REQUIRES: isa is one of available_isas(), and no kernel is running.
void set_isa_for_testing(Isa isa);

// All levels of this build, whatever the machine, in rising order.
std::span<const Isa> built_isas();

// All levels this machine can run, in rising order.
std::span<const Isa> available_isas();

}  // namespace chimere::cpu
