// panel_layout.h  How 16 rows of weights lie in a panel: the contract between the packer and the kernels.
//
// A panel of a quantised type is two regions: codes, then scales (from a multiple of 64 bytes on).
//
// Codes: for each block of 32 columns, bit planes of 64-byte vectors in which the 32-bit lane r belongs to row r and
// its byte b to column 4g + b of group g = 0..7. So one unpacked group is the operand of a 4-way byte dot product.
//   nibbles   4 vectors j = 0..3: low nibbles group j, high nibbles group j + 4
//   crumbs    2 vectors h = 0..1: bits 2i, 2i+1 are group 4h + i
//   bits      1 vector: bit g is group g
//   bytes     8 vectors, group g
// A code of n bits takes: 8 bytes; 6 nibbles + crumbs; 5 nibbles + bits; 4 nibbles; 3 crumbs + bits; 2 crumbs.
//
// Grid: the four codes of a group are an entry of a table of 512 and four signs, as in the file. Sets s = 0..3 of two
// groups 2s, 2s + 1 are 32 words of 16 bits; word i is row 4(i / 8) + i % 4 of group 2s + (i / 4) % 2, so that
// interleaving bytes inside 128 bits puts each row of each group in its lane.
//   u8[128]   index, low 8 bits: word i of vector s / 2, low byte for even s, high byte for odd s
//   u32[4]    index, bit 8: bit i of word s
//   u64[8]    signs: bit 4r + b of word g is row r, column 4g + b; set means negative
//
// Scales: for each superblock (1 block of 32, or 8 of them for the 256-element types) the fields below, each with 16
// rows side by side.
//   f16        h[16] d
//   f16_min    h[16] d, h[16] m
//   e8m0       u8[16] exponent
//   f16_half   h[16] d of columns 0..15, h[16] d of columns 16..31
//   k_min      h[16] d, h[16] dmin, then a sub-block of 32: u8[16] scale and u8[16] min
//   s8         h[16] d, then a sub-block of 32: s8[16]
//   s8_half    h[16] d, then a sub-block of 16: s8[16]
//   s8_row     f[16] d of the row, then a sub-block of 32: s8[16]
//   n4_min     h[16] d, h[16] dmin, then a sub-block of 16: u8[16], scale in the low nibble, min in the high
//   n4         h[16] d, u32[16]: nibble j is the scale of sub-block j of 32, worth 2n + 1
//   n4_half    h[16] d, u32[16], u32[16]: the same for the first and the second 16 columns of sub-block j
//
// Float panels: column after column, 16 rows each.
#pragma once

#include <cstdint>

namespace chimere::cpu {

inline constexpr int kPanelRows = 16;
inline constexpr int kBlockCols = 32;

enum class Codes { bits8, bits6, bits5, bits4, bits3, bits2, grid };
enum class Scales { f16, f16_min, e8m0, f16_half, k_min, s8, s8_half, s8_row, n4_min, n4, n4_half };

// One kernel family each.
enum class PanelKind : int {
  f32,
  f16,
  bf16,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
  nvfp4,
  iq3_s,
  iq3_xxs,
  iq12,    // IQ2_XXS, IQ1_S
  iq12_h,  // IQ2_XS, IQ2_S, IQ1_M: scales of 16 columns
  few,     // TQ1_0, TQ2_0, Q1_0, Q2_0
  iq2_k,
  iq3_k,
  iq4_k,
  iq4_ks,
  iq56_k,       // IQ5_K, IQ6_K: values as bytes
  iq3_s_bytes,  // not stored: iq3_s looked up once for many tokens
};
inline constexpr int kPanelKinds = 28;
inline constexpr int kFloatKinds = 3;

inline constexpr int kGridHigh = 128;   // where bit 8 of the indexes starts in a block of Codes::grid
inline constexpr int kGridSigns = 144;  // and the signs

constexpr int code_bytes(Codes codes) {  // of one block, 16 rows
  switch (codes) {
    case Codes::bits8: return 512;
    case Codes::bits6: return 384;
    case Codes::bits5: return 320;
    case Codes::bits4: return 256;
    case Codes::bits3: return 192;
    case Codes::bits2: return 128;
    case Codes::grid: return kGridSigns + 64;
  }
  return 0;
}

constexpr int superblock_blocks(Scales scales) {
  switch (scales) {
    case Scales::f16:
    case Scales::f16_min:
    case Scales::e8m0:
    case Scales::f16_half: return 1;
    default: return 8;
  }
}

constexpr int scale_bytes(Scales scales) {  // of one superblock, 16 rows
  switch (scales) {
    case Scales::f16: return 32;
    case Scales::f16_min: return 64;
    case Scales::e8m0: return 16;
    case Scales::f16_half: return 64;
    case Scales::k_min: return 64 + 8 * 32;
    case Scales::s8: return 32 + 8 * 16;
    case Scales::s8_half: return 32 + 16 * 16;
    case Scales::s8_row: return 64 + 8 * 16;
    case Scales::n4_min: return 64 + 16 * 16;
    case Scales::n4: return 32 + 64;
    case Scales::n4_half: return 32 + 128;
  }
  return 0;
}

// The fifth bit of a code that passes through a table: the same values, moved up (IQ4_K).
inline constexpr int kFifthBit = 4;

struct PanelFormat {
  Codes codes;
  Scales scales;
  int offset;  // value = code - offset, or lut[code] - offset; a power of two, or 0
  bool lut;    // codes pass through a table of 16 bytes; a fifth bit adds kFifthBit to what they find there
};

constexpr PanelFormat panel_format(PanelKind kind) {
  switch (kind) {
    case PanelKind::f32:
    case PanelKind::f16:
    case PanelKind::bf16: break;
    case PanelKind::q4_0: return {Codes::bits4, Scales::f16, 8, false};
    case PanelKind::q4_1: return {Codes::bits4, Scales::f16_min, 0, false};
    case PanelKind::q5_0: return {Codes::bits5, Scales::f16, 16, false};
    case PanelKind::q5_1: return {Codes::bits5, Scales::f16_min, 0, false};
    case PanelKind::q8_0: return {Codes::bits8, Scales::f16, 128, false};
    case PanelKind::q2_k: return {Codes::bits2, Scales::n4_min, 0, false};
    case PanelKind::q3_k: return {Codes::bits3, Scales::s8_half, 4, false};
    case PanelKind::q4_k: return {Codes::bits4, Scales::k_min, 0, false};
    case PanelKind::q5_k: return {Codes::bits5, Scales::k_min, 0, false};
    case PanelKind::q6_k: return {Codes::bits6, Scales::s8_half, 32, false};
    case PanelKind::iq4_nl: return {Codes::bits4, Scales::f16, 128, true};
    case PanelKind::iq4_xs: return {Codes::bits4, Scales::s8, 128, true};
    case PanelKind::mxfp4: return {Codes::bits4, Scales::e8m0, 64, true};
    case PanelKind::nvfp4: return {Codes::bits4, Scales::f16_half, 64, true};
    case PanelKind::iq3_s: return {Codes::grid, Scales::n4, 16, false};
    case PanelKind::iq3_xxs: return {Codes::bits4, Scales::n4, 64, true};
    case PanelKind::iq12: return {Codes::bits3, Scales::n4, 64, true};
    case PanelKind::iq12_h: return {Codes::bits3, Scales::n4_half, 64, true};
    case PanelKind::few: return {Codes::bits2, Scales::f16, 1, false};
    case PanelKind::iq2_k: return {Codes::bits3, Scales::s8_half, 64, true};
    case PanelKind::iq3_k: return {Codes::bits4, Scales::s8_half, 64, true};
    case PanelKind::iq4_k: return {Codes::bits5, Scales::s8_half, 128, true};
    case PanelKind::iq4_ks: return {Codes::bits5, Scales::s8_row, 128, true};
    case PanelKind::iq56_k: return {Codes::bits8, Scales::s8_half, 128, false};
    case PanelKind::iq3_s_bytes: return {Codes::bits8, Scales::n4, 16, false};
  }
  return {Codes::bits8, Scales::f16, 0, false};
}

constexpr bool has_min(Scales s) { return s == Scales::f16_min || s == Scales::k_min || s == Scales::n4_min; }
constexpr bool has_halves(Scales s) {
  return s == Scales::f16_half || s == Scales::s8_half || s == Scales::n4_min || s == Scales::n4_half;
}

// The entries of the IQ3_S grid as codes 17 + 2m of positive values, m the three bits of a magnitude 2m + 1; a code
// xor 0x1E (or 32 less the code) is that of the negative value.
struct GridTable {
  alignas(64) uint16_t nibbles[512];  // m of elements 0..3 in bits 1..3 of the nibbles
  alignas(64) uint32_t codes[512];
};

// What a type needs at run time beyond its kind: the table of codes, and a power of two that scales d.
struct PanelTables {
  alignas(16) uint8_t lut[16] = {};
  float d_factor = 1.0f;
  const GridTable* grid = nullptr;  // Codes::grid only
};

}  // namespace chimere::cpu
