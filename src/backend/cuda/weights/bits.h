// bits.h  The few instructions that unpacking is made of, for device and host alike.
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#include "backend/cuda/simt/simt.h"
#define CHIMERE_BOTH __host__ __device__ __forceinline__
#else
#include <bit>

#include "tensor/half.h"
#define CHIMERE_BOTH inline
#endif

// Only device code: the host compiler, which sees these functions too, knows no such pragma.
#ifdef __CUDA_ARCH__
#define CHIMERE_UNROLL _Pragma("unroll")
#else
#define CHIMERE_UNROLL
#endif

namespace chimere::cuda {

// Picks four of the eight bytes of hi:lo. REQUIRES: no selector nibble above 7.
CHIMERE_BOTH uint32_t pick_bytes(uint32_t lo, uint32_t hi, uint32_t selectors) {
#ifdef __CUDA_ARCH__
  return __byte_perm(lo, hi, selectors);
#else
  const uint64_t bytes = static_cast<uint64_t>(hi) << 32 | lo;
  uint32_t r = 0;
  for (int i = 0; i < 4; ++i) {
    r |= (static_cast<uint32_t>(bytes >> (8 * ((selectors >> (4 * i)) & 7u))) & 255u) << (8 * i);
  }
  return r;
#endif
}

CHIMERE_BOTH float bits_to_float(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
#endif
}

CHIMERE_BOTH float half_to_float(uint32_t bits) {
#ifdef __CUDACC__
  return __half2float(__half(__half_raw{static_cast<uint16_t>(bits)}));
#else
  return f16_to_f32(static_cast<uint16_t>(bits));
#endif
}

// a * b, never contracted with what follows: one place must not round otherwise than another.
CHIMERE_BOTH float times(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

// Loads of weights: read-only while kernels run, streamed past the L1 cache where a lane takes whole 16 bytes.
// The offset is 32 bits wide up to the last addition, which lets a warp's loads share it.
// REQUIRES: p + offset is aligned to the size.
struct Words2 {
  uint32_t w[2];
};
struct Words4 {
  uint32_t w[4];
};

// A row that was copied to shared memory: written while the kernel runs, and near.
struct SharedRow {
  const uint8_t* at;
};
template <class T>
CHIMERE_BOTH T load_shared(SharedRow p, uint32_t offset) {
#ifdef __CUDA_ARCH__
  return *reinterpret_cast<const T*>(p.at + offset);
#else
  T v;
  std::memcpy(&v, p.at + offset, sizeof(T));
  return v;
#endif
}

CHIMERE_BOTH Words4 load_words4(const uint8_t* p, uint32_t offset = 0) {
#ifdef __CUDA_ARCH__
  const uint4 v = simt::load_streaming(reinterpret_cast<const uint4*>(p + offset));
  return {{v.x, v.y, v.z, v.w}};
#else
  Words4 v;
  std::memcpy(&v, p + offset, 16);
  return v;
#endif
}

// The same where the lane's next load takes the other half of a sector: through the L1 cache.
CHIMERE_BOTH Words4 load_half_sector(const uint8_t* p, uint32_t offset) {
#ifdef __CUDA_ARCH__
  const uint4 v = __ldg(reinterpret_cast<const uint4*>(p + offset));
  return {{v.x, v.y, v.z, v.w}};
#else
  return load_words4(p, offset);
#endif
}

CHIMERE_BOTH Words2 load_words2(const uint8_t* p, uint32_t offset = 0) {
#ifdef __CUDA_ARCH__
  const uint2 v = __ldg(reinterpret_cast<const uint2*>(p + offset));
  return {{v.x, v.y}};
#else
  Words2 v;
  std::memcpy(&v, p + offset, 8);
  return v;
#endif
}

template <class T>
CHIMERE_BOTH uint32_t load_unsigned(const uint8_t* p, uint32_t offset) {
#ifdef __CUDA_ARCH__
  return __ldg(reinterpret_cast<const T*>(p + offset));
#else
  T v;
  std::memcpy(&v, p + offset, sizeof(T));
  return v;
#endif
}
CHIMERE_BOTH uint32_t load_u32(const uint8_t* p, uint32_t offset = 0) { return load_unsigned<uint32_t>(p, offset); }
CHIMERE_BOTH uint32_t load_u16(const uint8_t* p, uint32_t offset = 0) { return load_unsigned<uint16_t>(p, offset); }
CHIMERE_BOTH uint32_t load_u8(const uint8_t* p, uint32_t offset = 0) { return load_unsigned<uint8_t>(p, offset); }

CHIMERE_BOTH Words4 load_words4(SharedRow p, uint32_t offset) {
#ifdef __CUDA_ARCH__
  const auto v = load_shared<uint4>(p, offset);
  return {{v.x, v.y, v.z, v.w}};
#else
  return load_shared<Words4>(p, offset);
#endif
}
CHIMERE_BOTH Words4 load_half_sector(SharedRow p, uint32_t offset) { return load_words4(p, offset); }
CHIMERE_BOTH Words2 load_words2(SharedRow p, uint32_t offset) {
#ifdef __CUDA_ARCH__
  const auto v = load_shared<uint2>(p, offset);
  return {{v.x, v.y}};
#else
  return load_shared<Words2>(p, offset);
#endif
}
CHIMERE_BOTH uint32_t load_u32(SharedRow p, uint32_t offset) { return load_shared<uint32_t>(p, offset); }
CHIMERE_BOTH uint32_t load_u16(SharedRow p, uint32_t offset) { return load_shared<uint16_t>(p, offset); }
CHIMERE_BOTH uint32_t load_u8(SharedRow p, uint32_t offset) { return load_shared<uint8_t>(p, offset); }

}  // namespace chimere::cuda
