// cpu_features.cpp  CPUID, or what Linux tells of an arm64, asked once.
#include "backend/cpu/cpu_features.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace chimere::cpu {

namespace {

#if defined(__x86_64__)
constexpr Isa kIsas[] = {Isa::scalar, Isa::avx2, Isa::avx512, Isa::avx512vnni};
#elif defined(__aarch64__)
constexpr Isa kIsas[] = {Isa::scalar, Isa::neon, Isa::dotprod, Isa::i8mm};
#else
constexpr Isa kIsas[] = {Isa::scalar};
#endif

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
#elif defined(__aarch64__) && defined(__linux__)
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) == 0) return Isa::neon;
  return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0 ? Isa::i8mm : Isa::dotprod;
#elif defined(__aarch64__)
  return Isa::neon;
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
    case Isa::neon: return "neon";
    case Isa::dotprod: return "dotprod";
    case Isa::i8mm: return "i8mm";
  }
  return "unknown";
}

Isa detect_isa() {
  static const Isa isa = ask_cpu();
  return isa;
}

Isa active_isa() { return active().load(std::memory_order_relaxed); }

void set_isa_for_testing(Isa isa) {
  const std::span<const Isa> isas = available_isas();
  CHECK(std::find(isas.begin(), isas.end(), isa) != isas.end());
  active().store(isa, std::memory_order_relaxed);
}

std::span<const Isa> built_isas() { return kIsas; }

std::span<const Isa> available_isas() {
  const Isa* best = std::find(std::begin(kIsas), std::end(kIsas), detect_isa());
  return {std::begin(kIsas), best + 1};
}

}  // namespace chimere::cpu
