#include "backend/cpu/vec.h"

#include "backend/cpu/cpu_features.h"

namespace chimere::cpu {

const VecKernels& vec(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512vnni:
    case Isa::avx512: return kVecAvx512;
    case Isa::avx2: return kVecAvx2;
#elif defined(__aarch64__)
    case Isa::i8mm:
    case Isa::dotprod:
    case Isa::neon: return kVecNeon;
#endif
    default: return kVecPortable;
  }
}

const VecKernels& vec() { return vec(active_isa()); }

}  // namespace chimere::cpu
