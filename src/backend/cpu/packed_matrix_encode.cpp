// packed_matrix_encode.cpp  Spreads codes and scales over the lanes of a panel, and gathers them again.
#include "backend/cpu/packed_matrix_encode.h"

#include <cstring>

#include "backend/cpu/packed_matrix_blocks.h"
#include "backend/cpu/packed_matrix_dispatch.h"
#include "base/check.h"
#include "tensor/half.h"
#include "tensor/iq_grids.h"
#include "tensor/quant_blocks.h"

namespace chimere::cpu {

namespace {

// Tables of codes. The magnitudes of IQ3 take three bits and a sign, those of IQ1 and IQ2 are two or three values.
constexpr int8_t kIq3xxsValues[16] = {4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62};
constexpr int8_t kIq2Values[16] = {8, 25, 43, 0, -8, -25, -43};
constexpr int8_t kIq1Values[16] = {-9, -1, 7, 0, -7, 1, 9};  // eight times (-1, 0, 1) - 1/8, then + 1/8

constexpr PanelTables make_tables(const int8_t (&values)[16], int offset, float d_factor) {
  PanelTables t;
  for (int i = 0; i < 16; ++i) t.lut[i] = static_cast<uint8_t>(values[i] + offset);
  t.d_factor = d_factor;
  return t;
}
// The values of IQ2_K and IQ3_K, and behind them the same moved up.
template <int kValues>
constexpr PanelTables make_moved_tables(const int8_t (&values)[kValues], int move, int offset) {
  PanelTables t;
  for (int i = 0; i < kValues; ++i) {
    t.lut[i] = static_cast<uint8_t>(values[i] + offset);
    t.lut[i + kValues] = static_cast<uint8_t>(values[i] + move + offset);
  }
  return t;
}
static_assert(kFifthBit == kIq4kMove);
constexpr PanelTables kNoTables;
constexpr PanelTables kIq4Tables = make_tables(kIq4Values, 128, 1.0f);
constexpr PanelTables kIq2kTables = make_moved_tables(kIq2kValues, kIq2kMove, 64);
constexpr PanelTables kIq3kTables = make_moved_tables(kIq3kValues, kIq3kMove, 64);
constexpr PanelTables kFp4Tables = make_tables(kFp4Values, 64, 1.0f);
constexpr PanelTables kIq3xxsTables = make_tables(kIq3xxsValues, 64, 0.25f);
constexpr PanelTables kIq2Tables = make_tables(kIq2Values, 64, 0.125f);
constexpr PanelTables kIq1Tables = make_tables(kIq1Values, 64, 0.125f);

const GridTable& iq3_s_grid() {
  static const GridTable kTable = [] {
    GridTable t{};
    for (int i = 0; i < 512; ++i) {
      for (int e = 0; e < 4; ++e) {
        const uint32_t magnitude = static_cast<uint32_t>(kIqGrids.iq3_s[i][e]);  // odd
        t.nibbles[i] = static_cast<uint16_t>(t.nibbles[i] | (magnitude - 1) << (4 * e));
        t.codes[i] |= (16 + magnitude) << (8 * e);
      }
    }
    return t;
  }();
  return kTable;
}

// Planes of one block of 32 codes, lane's word of each vector.
void put_word(uint8_t* dst, int vector, int lane, uint32_t word) {
  std::memcpy(dst + 64 * vector + 4 * lane, &word, 4);
}
uint32_t get_word(const uint8_t* src, int vector, int lane) {
  uint32_t word;
  std::memcpy(&word, src + 64 * vector + 4 * lane, 4);
  return word;
}
uint32_t load_word(const uint8_t* codes) {
  uint32_t word;
  std::memcpy(&word, codes, 4);
  return word;
}

// Bits [shift, shift + n) of the codes of a group, moved to bit 0 of each byte.
uint32_t group_bits(const uint8_t* codes, int group, int shift, uint32_t mask) {
  return (load_word(codes + 4 * group) >> shift) & (mask * 0x01010101u);
}
uint32_t nibble_pair(const uint8_t* codes, int j) {
  return group_bits(codes, j, 0, 15) | group_bits(codes, j + 4, 0, 15) << 4;
}
void put_crumbs(const uint8_t* codes, int shift, uint8_t* dst, int lane) {
  for (int h = 0; h < 2; ++h) {
    uint32_t word = 0;
    for (int i = 0; i < 4; ++i) word |= group_bits(codes, 4 * h + i, shift, 3) << (2 * i);
    put_word(dst, h, lane, word);
  }
}
void put_bits(const uint8_t* codes, int shift, uint8_t* dst, int lane) {
  uint32_t word = 0;
  for (int g = 0; g < 8; ++g) word |= group_bits(codes, g, shift, 1) << g;
  put_word(dst, 0, lane, word);
}

template <Codes kCodes>
void put_codes(const uint8_t* codes, uint8_t* dst, int lane) {
  if constexpr (kCodes == Codes::bits8) {
    for (int g = 0; g < 8; ++g) put_word(dst, g, lane, load_word(codes + 4 * g));
  } else if constexpr (kCodes == Codes::bits2 || kCodes == Codes::bits3) {
    put_crumbs(codes, 0, dst, lane);
    if constexpr (kCodes == Codes::bits3) put_bits(codes, 2, dst + 128, lane);
  } else {
    for (int j = 0; j < 4; ++j) put_word(dst, j, lane, nibble_pair(codes, j));
    if constexpr (kCodes == Codes::bits5) put_bits(codes, 4, dst + 256, lane);
    if constexpr (kCodes == Codes::bits6) put_crumbs(codes, 4, dst + 256, lane);
  }
}

// Where row `lane` of a group lies among the words of its set.
int grid_word(int lane, int g) { return 8 * (lane / 4) + 4 * (g % 2) + lane % 4; }

// A block of eight groups, row `lane`: other rows share some of the bytes.
void put_grid(const uint8_t* low, int high, const uint8_t* signs, uint8_t* dst, int lane) {
  const int first = grid_word(lane, 0), second = grid_word(lane, 1);
  const int high_shift = lane % 4, sign_shift = 4 * (lane % 2);
  const auto merge = [](uint8_t& byte, int mask, int shift, int bits) {
    byte = static_cast<uint8_t>((byte & ~(mask << shift)) | bits << shift);
  };
  for (int s = 0; s < 4; ++s) {
    uint8_t* index = dst + 64 * (s / 2) + s % 2;
    index[2 * first] = low[2 * s];
    index[2 * second] = low[2 * s + 1];
    const int both = (high >> (2 * s)) & 3;
    merge(dst[kGridHigh + 4 * s + lane / 4], 0x11, high_shift, (both & 1) | (both & 2) << 3);
    uint8_t* negative = dst + kGridSigns + 16 * s + lane / 2;
    merge(negative[0], 15, sign_shift, signs[s] & 15);
    merge(negative[8], 15, sign_shift, signs[s] >> 4);
  }
}
uint32_t get_grid(const uint8_t* src, int lane, int g) {
  const int s = g / 2, i = grid_word(lane, g);
  const int high = (src[kGridHigh + 4 * s + i / 8] >> (i % 8)) & 1;
  const int nibble = src[kGridSigns + 8 * g + lane / 2] >> (4 * (lane % 2));
  uint32_t codes = iq3_s_grid().codes[src[64 * (s / 2) + 2 * i + s % 2] | high << 8];
  for (int b = 0; b < 4; ++b) {
    if ((nibble >> b) & 1) codes ^= 0x1Eu << (8 * b);
  }
  return codes;
}

// The four codes of group g.
uint32_t get_group(Codes layout, const uint8_t* src, int lane, int g) {
  const auto bits = [&](int vector, int shift, uint32_t mask) {
    return (get_word(src, vector, lane) >> shift) & (mask * 0x01010101u);
  };
  switch (layout) {
    case Codes::bits8: return get_word(src, g, lane);
    case Codes::bits6: return bits(g % 4, 4 * (g / 4), 15) | bits(4 + g / 4, 2 * (g % 4), 3) << 4;
    case Codes::bits5: return bits(g % 4, 4 * (g / 4), 15) | bits(4, g, 1) << 4;
    case Codes::bits4: return bits(g % 4, 4 * (g / 4), 15);
    case Codes::bits3: return bits(g / 4, 2 * (g % 4), 3) | bits(2, g, 1) << 2;
    case Codes::bits2: return bits(g / 4, 2 * (g % 4), 3);
    case Codes::grid: return get_grid(src, lane, g);
  }
  return 0;
}

void put_half(uint8_t* dst, int lane, uint16_t half) { std::memcpy(dst + 2 * lane, &half, 2); }
float get_half(const uint8_t* src, int lane) {
  uint16_t half;
  std::memcpy(&half, src + 2 * lane, 2);
  return f16_to_f32(half);
}

// The scales of one superblock; `index` counts the blocks of 32 inside the file block where those are superblocks.
template <Scales kScales>
void put_scales(const BlockParts& parts, int index, uint8_t* dst, int lane) {
  if constexpr (kScales == Scales::e8m0) {
    dst[lane] = parts.scale[0];
  } else if constexpr (kScales == Scales::s8_row) {
    std::memcpy(dst + 4 * lane, &parts.row_d, 4);
    for (int j = 0; j < 8; ++j) dst[64 + 16 * j + lane] = parts.scale[j];
  } else if constexpr (kScales == Scales::f16_half) {
    put_half(dst, lane, parts.d[2 * index]);
    put_half(dst + 32, lane, parts.d[2 * index + 1]);
  } else {
    put_half(dst, lane, parts.d[index]);
    if constexpr (has_min(kScales)) put_half(dst + 32, lane, parts.m);
    if constexpr (kScales == Scales::k_min) {
      for (int j = 0; j < 8; ++j) {
        dst[64 + 32 * j + lane] = parts.scale[j];
        dst[80 + 32 * j + lane] = parts.min[j];
      }
    } else if constexpr (kScales == Scales::s8) {
      for (int j = 0; j < 8; ++j) dst[32 + 16 * j + lane] = parts.scale[j];
    } else if constexpr (kScales == Scales::s8_half) {
      for (int j = 0; j < 16; ++j) dst[32 + 16 * j + lane] = parts.scale[j];
    } else if constexpr (kScales == Scales::n4_min) {
      for (int j = 0; j < 16; ++j) dst[64 + 16 * j + lane] = parts.scale[j];
    } else if constexpr (kScales == Scales::n4) {
      uint32_t word = 0;
      for (int j = 0; j < 8; ++j) word |= static_cast<uint32_t>(parts.scale[j]) << (4 * j);
      put_word(dst + 32, 0, lane, word);
    } else if constexpr (kScales == Scales::n4_half) {
      uint32_t first = 0, second = 0;
      for (int j = 0; j < 8; ++j) {
        first |= static_cast<uint32_t>(parts.scale[2 * j]) << (4 * j);
        second |= static_cast<uint32_t>(parts.scale[2 * j + 1]) << (4 * j);
      }
      put_word(dst + 32, 0, lane, first);
      put_word(dst + 32, 1, lane, second);
    }
  }
}

struct ScaleMinF {
  float scale;
  float min;
};

// Scale and minimum of 16 columns: half `half` of block j of the superblock at `src`.
ScaleMinF get_scale(Scales scales, const uint8_t* src, int lane, int j, int half, float d_factor) {
  const auto s8 = [&](int at) { return static_cast<float>(static_cast<int8_t>(src[at + lane])); };
  const auto u8 = [&](int at) { return static_cast<float>(src[at + lane]); };
  const auto nibble = [&](int vector) {
    return static_cast<float>(2 * ((get_word(src + 32, vector, lane) >> (4 * j)) & 15u) + 1);
  };
  if (scales == Scales::e8m0) return {mxfp4_scale(src[lane]), 0.0f};
  if (scales == Scales::s8_row) {
    float d;
    std::memcpy(&d, src + 4 * lane, 4);
    return {d * s8(64 + 16 * j), 0.0f};
  }
  const float d = get_half(src, lane);
  switch (scales) {
    case Scales::f16: return {d, 0.0f};
    case Scales::f16_min: return {d, get_half(src + 32, lane)};
    case Scales::f16_half: return {half == 0 ? d : get_half(src + 32, lane), 0.0f};
    case Scales::k_min: return {d * u8(64 + 32 * j), -(get_half(src + 32, lane) * u8(80 + 32 * j))};
    case Scales::s8: return {d * s8(32 + 16 * j), 0.0f};
    case Scales::s8_half: return {d * s8(32 + 32 * j + 16 * half), 0.0f};
    case Scales::n4_min: {
      const int both = src[64 + 32 * j + 16 * half + lane];
      return {d * static_cast<float>(both & 15), -(get_half(src + 32, lane) * static_cast<float>(both >> 4))};
    }
    case Scales::n4: return {d * d_factor * nibble(0), 0.0f};
    case Scales::n4_half: return {d * d_factor * nibble(half), 0.0f};
    case Scales::s8_row:
    case Scales::e8m0: break;
  }
  return {0.0f, 0.0f};
}

template <class Block, PanelKind kKind>
void pack_blocks(const std::byte* src, int64_t n_cols, uint8_t* panel, int lane) {
  constexpr PanelFormat kFormat = panel_format(kKind);
  constexpr int kSub = superblock_blocks(kFormat.scales);
  static_assert(Block::kElems % (kBlockCols * kSub) == 0);
  uint8_t* codes = panel;
  uint8_t* scales = panel + panel_geometry(kKind, n_cols).scales_offset;
  BlockParts parts;
  if constexpr (kFormat.scales == Scales::s8_row) {
    std::memcpy(&parts.row_d, src, sizeof(parts.row_d));
    src += sizeof(parts.row_d);
  }
  for (int64_t k = 0; k < n_cols; k += Block::kElems, src += sizeof(Block)) {
    Block block;
    std::memcpy(&block, src, sizeof(Block));
    take(block, parts);
    for (int i = 0; i < Block::kElems / kBlockCols; ++i) {
      if constexpr (kFormat.codes == Codes::grid) {
        put_grid(parts.grid + 8 * i, parts.grid_high[i], parts.signs + 4 * i, codes, lane);
      } else {
        put_codes<kFormat.codes>(parts.codes + kBlockCols * i, codes, lane);
      }
      codes += code_bytes(kFormat.codes);
      if (i % kSub == 0) {
        put_scales<kFormat.scales>(parts, i / kSub, scales, lane);
        scales += scale_bytes(kFormat.scales);
      }
    }
  }
}

void pack_plain(const std::byte* src, int bytes, int64_t n_cols, uint8_t* panel, int lane) {
  for (int64_t k = 0; k < n_cols; ++k) {
    std::memcpy(panel + (k * kPanelRows + lane) * bytes, src + k * bytes, static_cast<size_t>(bytes));
  }
}

}  // namespace

std::optional<PanelKind> panel_kind(DType type) {
  switch (type) {
    case DType::F32: return PanelKind::f32;
    case DType::F16: return PanelKind::f16;
    case DType::BF16: return PanelKind::bf16;
    case DType::Q4_0: return PanelKind::q4_0;
    case DType::Q4_1: return PanelKind::q4_1;
    case DType::Q5_0: return PanelKind::q5_0;
    case DType::Q5_1: return PanelKind::q5_1;
    case DType::Q8_0: return PanelKind::q8_0;
    case DType::Q2_K: return PanelKind::q2_k;
    case DType::Q3_K: return PanelKind::q3_k;
    case DType::Q4_K: return PanelKind::q4_k;
    case DType::Q5_K: return PanelKind::q5_k;
    case DType::Q6_K: return PanelKind::q6_k;
    case DType::IQ4_NL: return PanelKind::iq4_nl;
    case DType::IQ4_XS: return PanelKind::iq4_xs;
    case DType::MXFP4: return PanelKind::mxfp4;
    case DType::NVFP4: return PanelKind::nvfp4;
    case DType::IQ3_S: return PanelKind::iq3_s;
    case DType::IQ3_XXS: return PanelKind::iq3_xxs;
    case DType::IQ2_XXS:
    case DType::IQ1_S: return PanelKind::iq12;
    case DType::IQ2_XS:
    case DType::IQ2_S:
    case DType::IQ1_M: return PanelKind::iq12_h;
    case DType::TQ1_0:
    case DType::TQ2_0:
    case DType::Q1_0:
    case DType::Q2_0: return PanelKind::few;
    case DType::IQ2_K: return PanelKind::iq2_k;
    case DType::IQ3_K: return PanelKind::iq3_k;
    case DType::IQ4_K: return PanelKind::iq4_k;
    case DType::IQ4_KS: return PanelKind::iq4_ks;
    case DType::IQ5_K:
    case DType::IQ6_K: return PanelKind::iq56_k;
    case DType::I8:
    case DType::I16:
    case DType::I32:
    case DType::I64:
    case DType::F64: return std::nullopt;
  }
  return std::nullopt;
}

const PanelTables& panel_tables(DType type) {
  switch (type) {
    case DType::IQ4_NL:
    case DType::IQ4_XS:
    case DType::IQ4_K:
    case DType::IQ4_KS: return kIq4Tables;
    case DType::IQ2_K: return kIq2kTables;
    case DType::IQ3_K: return kIq3kTables;
    case DType::MXFP4:
    case DType::NVFP4: return kFp4Tables;
    case DType::IQ3_XXS: return kIq3xxsTables;
    case DType::IQ3_S: {
      static const PanelTables kTables = {{}, 1.0f, &iq3_s_grid()};
      return kTables;
    }
    case DType::IQ2_XXS:
    case DType::IQ2_XS:
    case DType::IQ2_S: return kIq2Tables;
    case DType::IQ1_S:
    case DType::IQ1_M: return kIq1Tables;
    default: return kNoTables;
  }
}

PanelGeometry panel_geometry(PanelKind kind, int64_t n_cols) {
  const auto round_up = [](int64_t n) { return (n + 63) / 64 * 64; };
  if (is_float_kind(kind)) {
    const int64_t bytes = round_up(n_cols * kPanelRows * (kind == PanelKind::f32 ? 4 : 2));
    return {bytes, bytes};
  }
  const PanelFormat format = panel_format(kind);
  const int64_t blocks = n_cols / kBlockCols;
  const int64_t codes = blocks * code_bytes(format.codes);
  return {codes, codes + round_up(blocks / superblock_blocks(format.scales) * scale_bytes(format.scales))};
}

void pack_row(DType type, const std::byte* src, int64_t n_cols, uint8_t* panel, int lane) {
  switch (type) {
    case DType::F32: return pack_plain(src, 4, n_cols, panel, lane);
    case DType::F16:
    case DType::BF16: return pack_plain(src, 2, n_cols, panel, lane);
    case DType::Q4_0: return pack_blocks<BlockQ4_0, PanelKind::q4_0>(src, n_cols, panel, lane);
    case DType::Q4_1: return pack_blocks<BlockQ4_1, PanelKind::q4_1>(src, n_cols, panel, lane);
    case DType::Q5_0: return pack_blocks<BlockQ5_0, PanelKind::q5_0>(src, n_cols, panel, lane);
    case DType::Q5_1: return pack_blocks<BlockQ5_1, PanelKind::q5_1>(src, n_cols, panel, lane);
    case DType::Q8_0: return pack_blocks<BlockQ8_0, PanelKind::q8_0>(src, n_cols, panel, lane);
    case DType::Q2_K: return pack_blocks<BlockQ2_K, PanelKind::q2_k>(src, n_cols, panel, lane);
    case DType::Q3_K: return pack_blocks<BlockQ3_K, PanelKind::q3_k>(src, n_cols, panel, lane);
    case DType::Q4_K: return pack_blocks<BlockQ4_K, PanelKind::q4_k>(src, n_cols, panel, lane);
    case DType::Q5_K: return pack_blocks<BlockQ5_K, PanelKind::q5_k>(src, n_cols, panel, lane);
    case DType::Q6_K: return pack_blocks<BlockQ6_K, PanelKind::q6_k>(src, n_cols, panel, lane);
    case DType::IQ4_NL: return pack_blocks<BlockIQ4_NL, PanelKind::iq4_nl>(src, n_cols, panel, lane);
    case DType::IQ4_XS: return pack_blocks<BlockIQ4_XS, PanelKind::iq4_xs>(src, n_cols, panel, lane);
    case DType::MXFP4: return pack_blocks<BlockMXFP4, PanelKind::mxfp4>(src, n_cols, panel, lane);
    case DType::NVFP4: return pack_blocks<BlockNVFP4, PanelKind::nvfp4>(src, n_cols, panel, lane);
    case DType::IQ3_S: return pack_blocks<BlockIQ3_S, PanelKind::iq3_s>(src, n_cols, panel, lane);
    case DType::IQ3_XXS: return pack_blocks<BlockIQ3_XXS, PanelKind::iq3_xxs>(src, n_cols, panel, lane);
    case DType::IQ2_XXS: return pack_blocks<BlockIQ2_XXS, PanelKind::iq12>(src, n_cols, panel, lane);
    case DType::IQ1_S: return pack_blocks<BlockIQ1_S, PanelKind::iq12>(src, n_cols, panel, lane);
    case DType::IQ2_XS: return pack_blocks<BlockIQ2_XS, PanelKind::iq12_h>(src, n_cols, panel, lane);
    case DType::IQ2_S: return pack_blocks<BlockIQ2_S, PanelKind::iq12_h>(src, n_cols, panel, lane);
    case DType::IQ1_M: return pack_blocks<BlockIQ1_M, PanelKind::iq12_h>(src, n_cols, panel, lane);
    case DType::TQ1_0: return pack_blocks<BlockTQ1_0, PanelKind::few>(src, n_cols, panel, lane);
    case DType::TQ2_0: return pack_blocks<BlockTQ2_0, PanelKind::few>(src, n_cols, panel, lane);
    case DType::Q1_0: return pack_blocks<BlockQ1_0, PanelKind::few>(src, n_cols, panel, lane);
    case DType::Q2_0: return pack_blocks<BlockQ2_0, PanelKind::few>(src, n_cols, panel, lane);
    case DType::IQ2_K: return pack_blocks<BlockIQ2_K, PanelKind::iq2_k>(src, n_cols, panel, lane);
    case DType::IQ3_K: return pack_blocks<BlockIQ3_K, PanelKind::iq3_k>(src, n_cols, panel, lane);
    case DType::IQ4_K: return pack_blocks<BlockIQ4_K, PanelKind::iq4_k>(src, n_cols, panel, lane);
    case DType::IQ4_KS: return pack_blocks<BlockIQ4_KS, PanelKind::iq4_ks>(src, n_cols, panel, lane);
    case DType::IQ5_K: return pack_blocks<BlockIQ5_K, PanelKind::iq56_k>(src, n_cols, panel, lane);
    case DType::IQ6_K: return pack_blocks<BlockIQ6_K, PanelKind::iq56_k>(src, n_cols, panel, lane);
    default: CHECK(!"a type without panels");
  }
}

void unpack_panel_row(DType type, const uint8_t* panel, int lane, int64_t n_cols, float* dst) {
  const PanelKind kind = *panel_kind(type);
  if (is_float_kind(kind)) {
    for (int64_t k = 0; k < n_cols; ++k) {
      const int64_t at = k * kPanelRows + lane;
      uint16_t half = 0;
      if (kind == PanelKind::f32) {
        std::memcpy(dst + k, panel + 4 * at, 4);
      } else {
        std::memcpy(&half, panel + 2 * at, 2);
        dst[k] = kind == PanelKind::f16 ? f16_to_f32(half) : bf16_to_f32(half);
      }
    }
    return;
  }
  const PanelFormat format = panel_format(kind);
  const PanelTables& tables = panel_tables(type);
  const int sub = superblock_blocks(format.scales);
  const uint8_t* scales = panel + panel_geometry(kind, n_cols).scales_offset;
  for (int64_t block = 0; block < n_cols / kBlockCols; ++block) {
    const uint8_t* codes = panel + block * code_bytes(format.codes);
    const uint8_t* superblock = scales + block / sub * scale_bytes(format.scales);
    ScaleMinF s{};
    for (int g = 0; g < 8; ++g) {
      if (g % 4 == 0)
        s = get_scale(format.scales, superblock, lane, static_cast<int>(block % sub), g / 4, tables.d_factor);
      const uint32_t word = get_group(format.codes, codes, lane, g);
      for (int b = 0; b < 4; ++b) {
        const uint32_t code = (word >> (8 * b)) & 255u;
        const uint32_t found = format.lut ? tables.lut[code & 15u] + kFifthBit * (code >> 4) : code;
        const int value = static_cast<int>(found) - format.offset;
        const float scaled = s.scale * static_cast<float>(value);
        *dst++ = has_min(format.scales) ? scaled + s.min : scaled;
      }
    }
  }
}

}  // namespace chimere::cpu
