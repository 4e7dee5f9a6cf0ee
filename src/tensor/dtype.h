// dtype.h  The element types a GGUF tensor may have: id in the file, name, block geometry.
//
// A block holds `block_elems` consecutive elements of one row in `block_bytes` bytes. The bit layouts are in
// quant_blocks.h; the ids are facts of the format, those from 137 on of ik_llama.cpp. A row of IQ4_KS has a scale before
// its blocks: such a row is only decoded whole.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace chimere {

enum class DType : uint32_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q2_K = 10,
  Q3_K = 11,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  IQ2_XXS = 16,
  IQ2_XS = 17,
  IQ3_XXS = 18,
  IQ1_S = 19,
  IQ4_NL = 20,
  IQ3_S = 21,
  IQ2_S = 22,
  IQ4_XS = 23,
  I8 = 24,
  I16 = 25,
  I32 = 26,
  I64 = 27,
  F64 = 28,
  IQ1_M = 29,
  BF16 = 30,
  TQ1_0 = 34,
  TQ2_0 = 35,
  MXFP4 = 39,
  NVFP4 = 40,
  Q1_0 = 41,
  Q2_0 = 42,
  IQ2_K = 137,
  IQ3_K = 138,
  IQ4_K = 139,
  IQ5_K = 140,
  IQ6_K = 141,
  IQ4_KS = 144,
};

struct DTypeInfo {
  DType type;
  std::string_view name;  // as printed and as accepted on the command line, any case
  int block_elems;
  int block_bytes;
  int row_prefix_bytes = 0;  // before the blocks of a row

  double bits_per_weight() const { return 8.0 * block_bytes / block_elems; }
};

const DTypeInfo& info(DType type);
std::string_view name(DType type);

// nullopt for ids that are unknown, removed or only used for activations.
std::optional<DType> dtype_from_id(uint32_t id);
std::optional<DType> dtype_from_name(std::string_view name);

// All types that may occur in a file, in id order.
std::span<const DTypeInfo> all_dtypes();

// REQUIRES: elems % block_elems == 0.
inline uint64_t row_bytes(DType type, uint64_t elems) {
  const DTypeInfo& t = info(type);
  return static_cast<uint64_t>(t.row_prefix_bytes) + elems / t.block_elems * t.block_bytes;
}

}  // namespace chimere
