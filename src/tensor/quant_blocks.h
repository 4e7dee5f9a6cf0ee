// quant_blocks.h  The bit layouts of quantised tensors: the only copy in the program.
//
// A block holds kElems consecutive elements of one row. Fields named d, dmin and m are the bit patterns of IEEE halves.
// Blocks lie back to back in a file, most sizes are no multiple of 4, so the structs are packed and have alignment 1:
// reading a field through a pointer to the struct is safe at any address, a pointer to a multi-byte field is not.
//
// In the comments i is the element inside the block, y its value, j a sub-block, nib(q,i) the "split halves" order of
// the 32-element types: element i < 16 is the low nibble of byte i, element i >= 16 the high nibble of byte i - 16.
#pragma once

#include <bit>
#include <cstdint>

namespace chimere {

static_assert(std::endian::native == std::endian::little, "multi-byte fields are little-endian in the file");

#pragma pack(push, 1)

// 32 elements and one scale.

struct BlockQ4_0 {  // y = d * (nib(q,i) - 8)
  static constexpr int kElems = 32;
  uint16_t d;
  uint8_t q[16];
};
struct BlockQ4_1 {  // y = d * nib(q,i) + m
  static constexpr int kElems = 32;
  uint16_t d;
  uint16_t m;
  uint8_t q[16];
};
struct BlockQ5_0 {  // y = d * ((nib(q,i) | bit i of h << 4) - 16)
  static constexpr int kElems = 32;
  uint16_t d;
  uint32_t h;
  uint8_t q[16];
};
struct BlockQ5_1 {  // y = d * (nib(q,i) | bit i of h << 4) + m
  static constexpr int kElems = 32;
  uint16_t d;
  uint16_t m;
  uint32_t h;
  uint8_t q[16];
};
struct BlockQ8_0 {  // y = d * q[i]
  static constexpr int kElems = 32;
  uint16_t d;
  int8_t q[32];
};
struct BlockIQ4_NL {  // y = d * kIq4Values[nib(q,i)]
  static constexpr int kElems = 32;
  uint16_t d;
  uint8_t q[16];
};
struct BlockMXFP4 {  // y = mxfp4_scale(e) * kFp4Values[nib(q,i)]
  static constexpr int kElems = 32;
  uint8_t e;
  uint8_t q[16];
};

// Short floats and few-bit types of other lengths.

struct BlockNVFP4 {  // sub-block i/16: nvfp4_scale(scales[j]) * kFp4Values[..], nibbles as split halves of 8 in q[8j..]
  static constexpr int kElems = 64;
  uint8_t scales[4];  // E4M3, the sign bit is ignored
  uint8_t q[32];
};
struct BlockQ1_0 {  // bit i, least significant first: y = bit ? d : -d
  static constexpr int kElems = 128;
  uint16_t d;
  uint8_t q[16];
};
struct BlockQ2_0 {  // y = d * (code - 1), four 2-bit codes a byte in order
  static constexpr int kElems = 64;
  uint16_t d;
  uint8_t q[16];
};

// 256 elements in sub-blocks of 16 or 32 with quantised scales. "Crumbs" of Q2_K, Q3_K and TQ2_0: bits 2k, 2k+1 of
// q[32n + l] belong to element 128n + 32k + l.

struct BlockQ2_K {  // sub-block i/16: y = d * (scales & 15) * crumb - dmin * (scales >> 4)
  static constexpr int kElems = 256;
  uint8_t scales[16];
  uint8_t q[64];
  uint16_t d;
  uint16_t dmin;
};
struct BlockQ3_K {  // sub-block i/16: y = d * q3_k_scale(j) * (crumb - (bit i/32 of hmask[i%32] ? 0 : 4))
  static constexpr int kElems = 256;
  uint8_t hmask[32];
  uint8_t q[64];
  uint8_t scales[12];  // sixteen 6-bit values, see q3_k_scale
  uint16_t d;
};
struct BlockQ4_K {  // sub-block i/32: y = d * scale * nibble - dmin * min; low nibbles of q[32k..] are sub-block 2k,
                    // high nibbles sub-block 2k+1
  static constexpr int kElems = 256;
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];  // eight 6-bit scales and minima, see k_scale_min
  uint8_t q[128];
};
struct BlockQ5_K {  // as Q4_K, with bit i/32 of h[i%32] as bit 4 of the code
  static constexpr int kElems = 256;
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t h[32];
  uint8_t q[128];
};
struct BlockQ6_K {  // i = 128n + 32k + l: y = d * scales[i/16] * (code - 32), low nibble of code in
                    // ql[64n + 32(k%2) + l] (low half for k < 2), its bits 4 and 5 at bit 2k of qh[32n + l]
  static constexpr int kElems = 256;
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  uint16_t d;
};
struct BlockTQ1_0 {  // y = d * tq1_0_digit(byte, n); order: q[0..31] for n = 0..4, q[32..47] for n = 0..4, qh for n =
                     // 0..3
  static constexpr int kElems = 256;
  uint8_t q[48];
  uint8_t qh[4];
  uint16_t d;
};
struct BlockTQ2_0 {  // y = d * (crumb - 1)
  static constexpr int kElems = 256;
  uint8_t q[64];
  uint16_t d;
};
struct BlockIQ4_XS {  // sub-block i/32: y = d * (iq4_xs_scale(j) - 32) * kIq4Values[split halves of q[16j..]]
  static constexpr int kElems = 256;
  uint16_t d;
  uint16_t scales_high;   // 2 bits a sub-block
  uint8_t scales_low[4];  // 4 bits a sub-block
  uint8_t q[128];
};

// 256 elements of ik_llama.cpp, each a value of a table under a scale for 16 elements (IQ4_KS: 32). Bit j of `extra` moves
// all values of sub-block j up, by kIq2kMove to kIq6kMove. Crumbs are those of Q2_K.

struct BlockIQ2_K {  // y = d * ((scale nibble j) - 8) * value(crumb), kIq2kValues
  static constexpr int kElems = 256;
  uint16_t d;
  uint16_t extra;
  uint8_t scales[8];
  uint8_t q[64];
};
struct BlockIQ3_K {  // y = d * iq3_k_scale(j) * value(crumb | bit i/32 of qh[i%32] << 2), kIq3kValues
  static constexpr int kElems = 256;
  uint16_t d;
  uint16_t extra;
  uint16_t scales_sign;
  uint8_t scales[8];
  uint8_t q[64];
  uint8_t qh[32];
};
struct BlockIQ4_K {  // y = d * iq4_k_scale(j) * value(split halves of q[16(i/32)..]), kIq4Values
  static constexpr int kElems = 256;
  uint16_t d;
  uint16_t extra;
  uint8_t scales_high[4];  // 2 bits a sub-block
  uint8_t scales_low[8];   // 4 bits a sub-block
  uint8_t q[128];
};
struct BlockIQ5_K {  // as IQ4_K with kIq5kValues; nibbles as in Q4_K, bit i/32 of qh[i%32] is bit 4 of the code
  static constexpr int kElems = 256;
  uint16_t d;
  uint16_t extra;
  uint8_t scales_high[4];
  uint8_t scales_low[8];
  uint8_t q[128];
  uint8_t qh[32];
};
struct
    BlockIQ6_K {  // y = d * scales[j] * value(code), kIq6kValues; nibbles as in Q4_K, bits 4 and 5 of the code at bit
                  // 2(i/32 % 4) of qh[32(i/128) + i%32]
  static constexpr int kElems = 256;
  uint16_t d;
  uint16_t extra;
  int8_t scales[16];
  uint8_t q[128];
  uint8_t qh[64];
};
struct
    BlockIQ4_KS {  // sub-block i/32: y = d * ((scales[j] & 254) - 127) * value(split halves of q[16j..]), kIq4Values,
                   // moved by bit 0 of scales[j]; d is the float before the blocks of the row
  static constexpr int kElems = 256;
  uint8_t scales[8];
  uint8_t q[128];
};

// 256 elements from codebooks (iq_grids.h). j = 0..7 is the sub-block of 32, l = 0..3 the group of 8 in it, e the
// element in the group: i = 32j + 8l + e. A set bit e in a byte of signs makes element e negative.

struct BlockIQ2_XXS {  // y = d * (0.5 + (a >> 28)) * 0.25 * grid * sign
  static constexpr int kElems = 256;
  uint16_t d;
  struct {
    uint8_t index[4];
    uint32_t a;  // four 7-bit sign codes (expand_signs), then a 4-bit scale
  } sub[8];
};
struct BlockIQ2_XS {  // y = d * (0.5 + scale) * 0.25 * grid * sign, a scale nibble for each 16 elements
  static constexpr int kElems = 256;
  uint16_t d;
  uint16_t q[32];  // 9-bit grid index, 7-bit sign code
  uint8_t scales[8];
};
struct BlockIQ2_S {  // as IQ2_XS with a 10-bit index q[4j+l] | crumb l of qh[j] << 8 and explicit signs
  static constexpr int kElems = 256;
  uint16_t d;
  uint8_t q[32];
  uint8_t signs[32];
  uint8_t qh[8];
  uint8_t scales[8];
};
struct BlockIQ3_XXS {  // y = d * (0.5 + (a >> 28)) * 0.5 * grid * sign; a group joins entries q[8j+2l] and q[8j+2l+1]
  static constexpr int kElems = 256;
  uint16_t d;
  uint8_t q[64];
  uint32_t a[8];  // as in IQ2_XXS
};
struct BlockIQ3_S {  // y = d * (1 + 2 * scale nibble j) * grid * sign; bit 2l (2l+1) of qh[j] is bit 8 of the index
  static constexpr int kElems = 256;
  uint16_t d;
  uint8_t q[64];
  uint8_t qh[8];
  uint8_t signs[32];
  uint8_t scales[4];
};
struct BlockIQ1_S {  // y = d * (2 * ((h >> 12) & 7) + 1) * (grid + delta), delta = h & 0x8000 ? -1/8 : 1/8
  static constexpr int kElems = 256;
  uint16_t d;
  uint8_t q[32];
  uint16_t h[8];  // bits 3l..3l+2: bits 8..10 of the index of group l
};
struct BlockIQ1_M {  // y = d * (2 * scale + 1) * (grid + delta); nibble l of qh[2j..]: 3 index bits, 1 bit delta < 0
  static constexpr int kElems = 256;
  uint8_t q[32];
  uint8_t qh[16];
  uint16_t scales[4];  // four 3-bit scales (one for 16 elements) and, on top, a nibble of d each: see iq1_m_d
};

#pragma pack(pop)

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22);
static_assert(sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34 && sizeof(BlockIQ4_NL) == 18);
static_assert(sizeof(BlockMXFP4) == 17 && sizeof(BlockNVFP4) == 36);
static_assert(sizeof(BlockQ1_0) == 18 && sizeof(BlockQ2_0) == 18);
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144);
static_assert(sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);
static_assert(sizeof(BlockTQ1_0) == 54 && sizeof(BlockTQ2_0) == 66 && sizeof(BlockIQ4_XS) == 136);
static_assert(sizeof(BlockIQ2_XXS) == 66 && sizeof(BlockIQ2_XS) == 74 && sizeof(BlockIQ2_S) == 82);
static_assert(sizeof(BlockIQ3_XXS) == 98 && sizeof(BlockIQ3_S) == 110);
static_assert(sizeof(BlockIQ2_K) == 76 && sizeof(BlockIQ3_K) == 110 && sizeof(BlockIQ4_K) == 144);
static_assert(sizeof(BlockIQ5_K) == 176 && sizeof(BlockIQ6_K) == 212 && sizeof(BlockIQ4_KS) == 136);
static_assert(sizeof(BlockIQ1_S) == 50 && sizeof(BlockIQ1_M) == 56);

// What the fields mean: constants and the packings that take more than a shift.

inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// The tables of ik_llama.cpp, and by how much a set bit of `extra` moves their values. IQ4_K and IQ4_KS have kIq4Values.
inline constexpr int8_t kIq2kValues[4] = {-31, -13, 1, 17};
inline constexpr int8_t kIq3kValues[8] = {-63, -40, -23, -10, 1, 13, 28, 47};
inline constexpr int8_t kIq5kValues[32] = {-126, -114, -103, -92, -83, -74, -65, -57, -50, -43, -36,
                                           -30,  -24,  -18,  -12, -6,  -1,  5,   11,  17,  23,  29,
                                           36,   43,   51,   59,  68,  77,  87,  97,  109, 121};
inline constexpr int8_t kIq6kValues[64] = {
    -127, -121, -115, -109, -104, -98, -93, -88, -84, -79, -74, -70, -66, -62, -58, -54, -51, -47, -44, -40, -37, -34,
    -31,  -28,  -25,  -22,  -19,  -16, -13, -11, -8,  -5,  -2,  0,   3,   6,   9,   12,  14,  17,  20,  23,  27,  30,
    33,   36,   40,   44,   47,   51,  55,  59,  63,  68,  72,  77,  82,  87,  92,  98,  103, 109, 115, 121};
inline constexpr int kIq2kMove = 5, kIq3kMove = 4, kIq4kMove = 4, kIq5kMove = 2, kIq6kMove = 1;

// Twice the E2M1 values, so that they are integers; the scales below carry the half.
inline constexpr int8_t kFp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// 2^(e - 128); e = 0 and 1 are float denormals. e = 255 (NaN in the MX standard) is taken as a number, as peers do.
constexpr float mxfp4_scale(uint8_t e) {
  return std::bit_cast<float>(e < 2 ? 0x200000u << e : static_cast<uint32_t>(e - 1) << 23);
}

// Half the E4M3 value; the code 0x7F (NaN) counts as 0.
constexpr float nvfp4_scale(uint8_t x) {
  const int exponent = (x >> 3) & 15, mantissa = x & 7;
  if ((x & 0x7F) == 0x7F) return 0.0f;
  if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-10f;
  return static_cast<float>(8 + mantissa) * std::bit_cast<float>(static_cast<uint32_t>(exponent + 127 - 11) << 23);
}

struct ScaleMin {
  uint8_t scale;
  uint8_t min;
};

// Sub-block j = 0..7 of the 12 bytes of Q4_K and Q5_K.
constexpr ScaleMin k_scale_min(const uint8_t* s, int j) {
  if (j < 4) return {static_cast<uint8_t>(s[j] & 63), static_cast<uint8_t>(s[j + 4] & 63)};
  return {static_cast<uint8_t>((s[j + 4] & 15) | ((s[j - 4] >> 6) << 4)),
          static_cast<uint8_t>((s[j + 4] >> 4) | ((s[j] >> 6) << 4))};
}

// Sub-block j = 0..15 of the 12 bytes of Q3_K: -32..31.
constexpr int q3_k_scale(const uint8_t* s, int j) {
  return (((s[j % 8] >> (4 * (j / 8))) & 15) | (((s[8 + j % 4] >> (2 * (j / 4))) & 3) << 4)) - 32;
}

// Sub-block j = 0..7 of IQ4_XS: -32..31.
constexpr int iq4_xs_scale(uint16_t high, const uint8_t* low, int j) {
  return (((low[j / 2] >> (4 * (j % 2))) & 15) | (((high >> (2 * j)) & 3) << 4)) - 32;
}

// Sub-block j = 0..15 of IQ3_K: odd, -31..31.
constexpr int iq3_k_scale(const BlockIQ3_K& b, int j) {
  const int size = 2 * ((b.scales[j / 2] >> (4 * (j % 2))) & 15) + 1;
  return (b.scales_sign >> j) & 1 ? -size : size;
}

// Sub-block j = 0..15 of IQ4_K and IQ5_K: -32..31.
constexpr int iq4_k_scale(const uint8_t* high, const uint8_t* low, int j) {
  return (((low[j / 2] >> (4 * (j % 2))) & 15) | ((high[j / 4] >> (2 * (j % 4))) & 3) << 4) - 32;
}

// Codes of element i.
constexpr int iq3_k_code(const BlockIQ3_K& b, int i) {
  return ((b.q[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4))) & 3) | ((b.qh[i % 32] >> (i / 32)) & 1) << 2;
}
constexpr int paired_nibble(const uint8_t* q, int i) { return (q[32 * (i / 64) + i % 32] >> (4 * (i / 32 % 2))) & 15; }
constexpr int iq5_k_code(const BlockIQ5_K& b, int i) {
  return paired_nibble(b.q, i) | ((b.qh[i % 32] >> (i / 32)) & 1) << 4;
}
constexpr int iq6_k_code(const BlockIQ6_K& b, int i) {
  return paired_nibble(b.q, i) | ((b.qh[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4))) & 3) << 4;
}

// Ternary digit n = 0..4 of a TQ1_0 byte: -1, 0, 1. The byte is a fraction in base 3, scaled to 256.
constexpr int tq1_0_digit(uint8_t x, int n) {
  constexpr int kPow3[5] = {1, 3, 9, 27, 81};
  return ((((x * kPow3[n]) & 255) * 3) >> 8) - 1;
}

// The eight sign bits of a 7-bit code: the last makes the number of set bits even.
constexpr uint8_t expand_signs(uint32_t code) {
  return static_cast<uint8_t>(code | static_cast<uint32_t>(std::popcount(code) & 1) << 7);
}

// The half of an IQ1_M block, scattered over the top nibbles of its scales.
constexpr uint16_t iq1_m_d(const BlockIQ1_M& b) {
  return static_cast<uint16_t>((b.scales[0] >> 12) | ((b.scales[1] >> 12) << 4) | ((b.scales[2] >> 12) << 8) |
                               ((b.scales[3] >> 12) << 12));
}

}  // namespace chimere
