// cpu_features.cpp  CPUID, asked once.
#include "backend/cpu/cpu_features.h"

#include <atomic>

#include "base/check.h"

namespace chimere::cpu {

namespace {

constexpr Isa kIsas[] = {Isa::scalar, Isa::avx2, Isa::avx512, Isa::avx512vnni};

Isa ask_cpu() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  // f16c has no name in __builtin_cpu_supports of g++ 12; every CPU with AVX2 has it.
  if (!avx2) return Isa::scalar;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (!avx512) return Isa::avx2;
  return __builtin_cpu_supports("avx512vnni") ? Isa::avx512vnni : Isa::avx512;
#else
  return Isa::scalar;
#endif
}

std::atomic<Isa>& active() {
  static std::atomic<Isa> isa{detect_isa()};
  return isa;
}

}  // namespace

std::string_view name(Isa isa) {
  switch (isa) {
    case Isa::scalar: return "scalar";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
    case Isa::avx512vnni: return "avx512vnni";
  }
  return "unknown";
}

Isa detect_isa() {
  static const Isa isa = ask_cpu();
  return isa;
}

Isa active_isa() { return active().load(std::memory_order_relaxed); }

void set_isa_for_testing(Isa isa) {
  CHECK(isa <= detect_isa());
  active().store(isa, std::memory_order_relaxed);
}

std::span<const Isa> built_isas() {
#if defined(__x86_64__)
  return kIsas;
#else
  return {kIsas, 1};
#endif
}

std::span<const Isa> available_isas() { return {kIsas, static_cast<size_t>(detect_isa()) + 1}; }

}  // namespace chimere::cpu
