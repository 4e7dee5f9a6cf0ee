// packed_matrix_blocks.cpp  One small function for each type; the formulas are those of quant_blocks.h.
#include "backend/cpu/packed_matrix_blocks.h"

#include <cstring>

#include "tensor/half.h"
#include "tensor/iq_grids.h"

namespace chimere::cpu {

namespace {
void split_nibbles(const uint8_t* q, int half, uint8_t* codes) {
  for (int i = 0; i < half; ++i) {
    codes[i] = q[i] & 15;
    codes[i + half] = q[i] >> 4;
  }
}
}  // namespace

void take(const BlockQ4_0& b, BlockParts& out) {
  out.d[0] = b.d;
  split_nibbles(b.q, 16, out.codes);
}
void take(const BlockQ4_1& b, BlockParts& out) {
  out.d[0] = b.d;
  out.m = b.m;
  split_nibbles(b.q, 16, out.codes);
}
namespace {
void add_fifth_bits(uint32_t h, uint8_t* codes) {
  for (int i = 0; i < 32; ++i) codes[i] |= static_cast<uint8_t>(((h >> i) & 1u) << 4);
}
}  // namespace

void take(const BlockQ5_0& b, BlockParts& out) {
  out.d[0] = b.d;
  split_nibbles(b.q, 16, out.codes);
  add_fifth_bits(b.h, out.codes);
}
void take(const BlockQ5_1& b, BlockParts& out) {
  out.d[0] = b.d;
  out.m = b.m;
  split_nibbles(b.q, 16, out.codes);
  add_fifth_bits(b.h, out.codes);
}
void take(const BlockQ8_0& b, BlockParts& out) {
  out.d[0] = b.d;
  for (int i = 0; i < 32; ++i) out.codes[i] = static_cast<uint8_t>(b.q[i] + 128);
}
void take(const BlockIQ4_NL& b, BlockParts& out) {
  out.d[0] = b.d;
  split_nibbles(b.q, 16, out.codes);
}
void take(const BlockMXFP4& b, BlockParts& out) {
  out.scale[0] = b.e;
  split_nibbles(b.q, 16, out.codes);
}
void take(const BlockNVFP4& b, BlockParts& out) {
  for (int j = 0; j < 4; ++j) {
    out.d[j] = f32_to_f16(nvfp4_scale(b.scales[j]));  // exact: a 4-bit mantissa, exponents -10 to 7
    split_nibbles(b.q + 8 * j, 8, out.codes + 16 * j);
  }
}

void take(const BlockQ1_0& b, BlockParts& out) {
  for (int j = 0; j < 4; ++j) out.d[j] = b.d;
  for (int i = 0; i < b.kElems; ++i) out.codes[i] = (b.q[i / 8] >> (i % 8)) & 1 ? 2 : 0;
}
void take(const BlockQ2_0& b, BlockParts& out) {
  for (int j = 0; j < 2; ++j) out.d[j] = b.d;
  for (int i = 0; i < b.kElems; ++i) out.codes[i] = (b.q[i / 4] >> (2 * (i % 4))) & 3;
}
void take(const BlockTQ1_0& b, BlockParts& out) {
  for (int j = 0; j < 8; ++j) out.d[j] = b.d;
  uint8_t* c = out.codes;
  for (int n = 0; n < 5; ++n) {
    for (int m = 0; m < 32; ++m) *c++ = static_cast<uint8_t>(tq1_0_digit(b.q[m], n) + 1);
  }
  for (int n = 0; n < 5; ++n) {
    for (int m = 32; m < 48; ++m) *c++ = static_cast<uint8_t>(tq1_0_digit(b.q[m], n) + 1);
  }
  for (int n = 0; n < 4; ++n) {
    for (int m = 0; m < 4; ++m) *c++ = static_cast<uint8_t>(tq1_0_digit(b.qh[m], n) + 1);
  }
}

namespace {
void crumbs(const uint8_t* q, uint8_t* codes) {
  for (int n = 0; n < 2; ++n) {
    for (int k = 0; k < 4; ++k) {
      for (int l = 0; l < 32; ++l) codes[128 * n + 32 * k + l] = (q[32 * n + l] >> (2 * k)) & 3;
    }
  }
}
}  // namespace

void take(const BlockTQ2_0& b, BlockParts& out) {
  for (int j = 0; j < 8; ++j) out.d[j] = b.d;
  crumbs(b.q, out.codes);
}
void take(const BlockQ2_K& b, BlockParts& out) {
  out.d[0] = b.d;
  out.m = b.dmin;
  std::memcpy(out.scale, b.scales, 16);
  crumbs(b.q, out.codes);
}
void take(const BlockQ3_K& b, BlockParts& out) {
  out.d[0] = b.d;
  for (int j = 0; j < 16; ++j) out.scale[j] = static_cast<uint8_t>(q3_k_scale(b.scales, j));
  crumbs(b.q, out.codes);
  for (int j = 0; j < 8; ++j) {
    for (int l = 0; l < 32; ++l) out.codes[32 * j + l] |= static_cast<uint8_t>(((b.hmask[l] >> j) & 1) << 2);
  }
}
namespace {
template <class Block>
void take_k_min(const Block& b, BlockParts& out) {
  out.d[0] = b.d;
  out.m = b.dmin;
  for (int j = 0; j < 8; ++j) {
    const ScaleMin s = k_scale_min(b.scales, j);
    out.scale[j] = s.scale;
    out.min[j] = s.min;
  }
  for (int k = 0; k < 4; ++k) split_nibbles(b.q + 32 * k, 32, out.codes + 64 * k);
}
}  // namespace

void take(const BlockQ4_K& b, BlockParts& out) { take_k_min(b, out); }
void take(const BlockQ5_K& b, BlockParts& out) {
  take_k_min(b, out);
  for (int j = 0; j < 8; ++j) {
    for (int l = 0; l < 32; ++l) out.codes[32 * j + l] |= static_cast<uint8_t>(((b.h[l] >> j) & 1) << 4);
  }
}
void take(const BlockQ6_K& b, BlockParts& out) {
  out.d[0] = b.d;
  std::memcpy(out.scale, b.scales, 16);
  for (int n = 0; n < 2; ++n) {
    for (int k = 0; k < 4; ++k) {
      for (int l = 0; l < 32; ++l) {
        const int low = (b.ql[64 * n + 32 * (k % 2) + l] >> (4 * (k / 2))) & 15;
        const int high = (b.qh[32 * n + l] >> (2 * k)) & 3;
        out.codes[128 * n + 32 * k + l] = static_cast<uint8_t>(low | high << 4);
      }
    }
  }
}
void take(const BlockIQ4_XS& b, BlockParts& out) {
  out.d[0] = b.d;
  for (int j = 0; j < 8; ++j) {
    out.scale[j] = static_cast<uint8_t>(iq4_xs_scale(b.scales_high, b.scales_low, j));
    split_nibbles(b.q + 16 * j, 16, out.codes + 32 * j);
  }
}

namespace {
// Codebook types. Grids are turned into codes once, a word of 4 or 8 bytes an entry; signs are then a table of words
// too, so that packing costs a few operations a group.
struct GridCodes {
  uint64_t iq2_xxs[256];
  uint64_t iq2_xs[512];
  uint64_t iq2_s[1024];
  uint64_t iq1[2048];  // for the delta of -1/8; that of +1/8 adds 4 to each code
  uint32_t iq3_xxs[256];
  uint64_t sign_bytes[256];  // a byte of ones for each set bit
};

template <class Word, int kEntries, int kElems, class Code>
void code_grid(const int8_t (&grid)[kEntries][kElems], Word (&words)[kEntries], Code code) {
  static_assert(sizeof(Word) == kElems);
  for (int i = 0; i < kEntries; ++i) {
    words[i] = 0;
    for (int e = 0; e < kElems; ++e) words[i] |= static_cast<Word>(code(grid[i][e])) << (8 * e);
  }
}

const GridCodes& grid_codes() {
  static const GridCodes kCodes = [] {
    GridCodes c;
    const auto iq2 = [](int magnitude) { return magnitude == 8 ? 0u : magnitude == 25 ? 1u : 2u; };
    code_grid(kIqGrids.iq2_xxs, c.iq2_xxs, iq2);
    code_grid(kIqGrids.iq2_xs, c.iq2_xs, iq2);
    code_grid(kIqGrids.iq2_s, c.iq2_s, iq2);
    code_grid(kIqGrids.iq1, c.iq1, [](int value) { return static_cast<unsigned>(value + 1); });
    code_grid(kIqGrids.iq3_xxs, c.iq3_xxs, [](int magnitude) { return static_cast<unsigned>(magnitude / 8); });
    for (int signs = 0; signs < 256; ++signs) {
      c.sign_bytes[signs] = 0;
      for (int e = 0; e < 8; ++e) {
        if ((signs >> e) & 1) c.sign_bytes[signs] |= uint64_t{255} << (8 * e);
      }
    }
    return c;
  }();
  return kCodes;
}

constexpr uint64_t kEachByte = 0x0101010101010101u;

void put_group(uint64_t codes, uint8_t* dst) { std::memcpy(dst, &codes, 8); }

// Codes 0..2 and 4..6 for the two signs.
uint64_t signed_iq2(uint64_t codes, uint64_t sign_bytes) { return codes | (sign_bytes & (4 * kEachByte)); }
// Codes 0..7 and 8..15.
uint64_t signed_iq3_xxs(uint64_t codes, uint64_t sign_bytes) { return codes | (sign_bytes & (8 * kEachByte)); }
}  // namespace

void take(const BlockIQ2_XXS& b, BlockParts& out) {
  const GridCodes& grids = grid_codes();
  out.d[0] = b.d;
  for (int g = 0; g < 32; ++g) {
    const auto& sub = b.sub[g / 4];
    out.scale[g / 4] = static_cast<uint8_t>(sub.a >> 28);
    const int signs = expand_signs((sub.a >> (7 * (g % 4))) & 127);
    put_group(signed_iq2(grids.iq2_xxs[sub.index[g % 4]], grids.sign_bytes[signs]), out.codes + 8 * g);
  }
}
namespace {
void take_iq2_scales(const uint8_t* scales, BlockParts& out) {
  for (int j = 0; j < 16; ++j) out.scale[j] = (scales[j / 2] >> (4 * (j % 2))) & 15;
}
}  // namespace

void take(const BlockIQ2_XS& b, BlockParts& out) {
  const GridCodes& grids = grid_codes();
  out.d[0] = b.d;
  take_iq2_scales(b.scales, out);
  for (int g = 0; g < 32; ++g) {
    const int v = b.q[g];
    const int signs = expand_signs(static_cast<uint32_t>(v >> 9));
    put_group(signed_iq2(grids.iq2_xs[v & 511], grids.sign_bytes[signs]), out.codes + 8 * g);
  }
}
void take(const BlockIQ2_S& b, BlockParts& out) {
  const GridCodes& grids = grid_codes();
  out.d[0] = b.d;
  take_iq2_scales(b.scales, out);
  for (int g = 0; g < 32; ++g) {
    const int index = b.q[g] | ((b.qh[g / 4] >> (2 * (g % 4))) & 3) << 8;
    put_group(signed_iq2(grids.iq2_s[index], grids.sign_bytes[b.signs[g]]), out.codes + 8 * g);
  }
}
void take(const BlockIQ3_XXS& b, BlockParts& out) {
  const GridCodes& grids = grid_codes();
  out.d[0] = b.d;
  for (int g = 0; g < 32; ++g) {
    const uint32_t a = b.a[g / 4];
    out.scale[g / 4] = static_cast<uint8_t>(a >> 28);
    const int signs = expand_signs((a >> (7 * (g % 4))) & 127);
    const uint64_t codes = grids.iq3_xxs[b.q[2 * g]] | uint64_t{grids.iq3_xxs[b.q[2 * g + 1]]} << 32;
    put_group(signed_iq3_xxs(codes, grids.sign_bytes[signs]), out.codes + 8 * g);
  }
}
void take(const BlockIQ3_S& b, BlockParts& out) {
  out.d[0] = b.d;
  for (int j = 0; j < 8; ++j) out.scale[j] = (b.scales[j / 2] >> (4 * (j % 2))) & 15;
  std::memcpy(out.grid, b.q, 64);
  std::memcpy(out.grid_high, b.qh, 8);
  std::memcpy(out.signs, b.signs, 32);
}
void take(const BlockIQ1_S& b, BlockParts& out) {
  const GridCodes& grids = grid_codes();
  out.d[0] = b.d;
  for (int g = 0; g < 32; ++g) {
    const int h = b.h[g / 4];
    out.scale[g / 4] = static_cast<uint8_t>((h >> 12) & 7);
    const int index = b.q[g] | ((h >> (3 * (g % 4))) & 7) << 8;
    put_group(grids.iq1[index] + (h & 0x8000 ? 0 : 4 * kEachByte), out.codes + 8 * g);
  }
}
void take(const BlockIQ1_M& b, BlockParts& out) {
  const GridCodes& grids = grid_codes();
  out.d[0] = iq1_m_d(b);
  for (int j = 0; j < 16; ++j) out.scale[j] = (b.scales[j / 4] >> (3 * (j % 4))) & 7;
  for (int g = 0; g < 32; ++g) {
    const int t = (b.qh[g / 2] >> (4 * (g % 2))) & 15;
    put_group(grids.iq1[b.q[g] | (t & 7) << 8] + (t & 8 ? 0 : 4 * kEachByte), out.codes + 8 * g);
  }
}

// Types of ik_llama.cpp. Where all values, moved or not, fit a table of 16, the bit that moves them is part of the code;
// five and six bits become the values themselves.
namespace {
void take_iq4_scales(const uint8_t* high, const uint8_t* low, BlockParts& out) {
  for (int j = 0; j < 16; ++j) out.scale[j] = static_cast<uint8_t>(iq4_k_scale(high, low, j));
}
// `bit` of each code of sub-block i / 16 whose values are moved.
void mark_moved(uint16_t extra, int bit, uint8_t* codes) {
  for (int i = 0; i < 256; ++i) codes[i] |= static_cast<uint8_t>(((extra >> (i / 16)) & 1) << bit);
}
template <int kValues>
void to_bytes(const int8_t (&values)[kValues], uint16_t extra, int move, uint8_t* codes) {
  for (int i = 0; i < 256; ++i) {
    codes[i] = static_cast<uint8_t>(values[codes[i]] + ((extra >> (i / 16)) & 1 ? move : 0) + 128);
  }
}
}  // namespace

void take(const BlockIQ2_K& b, BlockParts& out) {
  out.d[0] = b.d;
  for (int j = 0; j < 16; ++j) out.scale[j] = static_cast<uint8_t>(((b.scales[j / 2] >> (4 * (j % 2))) & 15) - 8);
  crumbs(b.q, out.codes);
  mark_moved(b.extra, 2, out.codes);
}
void take(const BlockIQ3_K& b, BlockParts& out) {
  out.d[0] = b.d;
  for (int j = 0; j < 16; ++j) out.scale[j] = static_cast<uint8_t>(iq3_k_scale(b, j));
  for (int i = 0; i < b.kElems; ++i) out.codes[i] = static_cast<uint8_t>(iq3_k_code(b, i));
  mark_moved(b.extra, 3, out.codes);
}
void take(const BlockIQ4_K& b, BlockParts& out) {
  out.d[0] = b.d;
  take_iq4_scales(b.scales_high, b.scales_low, out);
  for (int j = 0; j < 8; ++j) split_nibbles(b.q + 16 * j, 16, out.codes + 32 * j);
  mark_moved(b.extra, 4, out.codes);
}
void take(const BlockIQ4_KS& b, BlockParts& out) {
  for (int j = 0; j < 8; ++j) {
    out.scale[j] = static_cast<uint8_t>((b.scales[j] & 254) - 127);
    split_nibbles(b.q + 16 * j, 16, out.codes + 32 * j);
    for (int l = 0; l < 32; ++l) out.codes[32 * j + l] |= static_cast<uint8_t>((b.scales[j] & 1) << 4);
  }
}
void take(const BlockIQ5_K& b, BlockParts& out) {
  out.d[0] = b.d;
  take_iq4_scales(b.scales_high, b.scales_low, out);
  for (int i = 0; i < b.kElems; ++i) out.codes[i] = static_cast<uint8_t>(iq5_k_code(b, i));
  to_bytes(kIq5kValues, b.extra, kIq5kMove, out.codes);
}
void take(const BlockIQ6_K& b, BlockParts& out) {
  out.d[0] = b.d;
  std::memcpy(out.scale, b.scales, 16);
  for (int i = 0; i < b.kElems; ++i) out.codes[i] = static_cast<uint8_t>(iq6_k_code(b, i));
  to_bytes(kIq6kValues, b.extra, kIq6kMove, out.codes);
}

}  // namespace chimere::cpu
