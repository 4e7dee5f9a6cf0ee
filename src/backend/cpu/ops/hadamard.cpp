#include "backend/cpu/ops/hadamard.h"

#include <cmath>

namespace chimere::cpu {

void hadamard(int n, float* x) {
  const int block = hadamard_block(n);
  const float norm = 1.0f / std::sqrt(static_cast<float>(block));
  for (float* b = x; b < x + n; b += block) {
    for (int half = 1; half < block; half *= 2) {
      for (int i = 0; i < block; i += 2 * half) {
        float* lo = b + i;
        float* hi = lo + half;
        for (int j = 0; j < half; ++j) {
          const float u = lo[j];
          const float v = hi[j];
          lo[j] = u + v;
          hi[j] = u - v;
        }
      }
    }
    for (int i = 0; i < block; ++i) b[i] *= norm;
  }
}

}  // namespace chimere::cpu
