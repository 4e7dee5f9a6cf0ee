// shard.h  Checks and reads the bytes of one GGUF file; paths and split sets are handled by its callers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gguf/gguf.h"

namespace chimere::gguf {

inline constexpr uint64_t kMaxNameBytes = 64 << 10;  // keys and tensor names
inline constexpr uint64_t kMaxStringBytes = 16 << 20;
inline constexpr uint64_t kMaxArrayElements = uint64_t{1} << 30;
inline constexpr uint64_t kMaxDimension = uint64_t{1} << 40;  // exclusive
inline constexpr uint64_t kDefaultAlignment = 32;
// At least 8, as the format requires: then every element of every type is naturally aligned.
inline constexpr uint64_t kMinAlignment = 8;
inline constexpr uint64_t kMaxAlignment = 64 << 10;

// Memory the tables of a file (or of a whole split set) may take. Real files need tens of megabytes, for their
// vocabulary; the limit bounds what a file of many gigabytes could ask for.
struct MemoryBudget {
  uint64_t left = uint64_t{1} << 30;

  bool take(uint64_t bytes) {
    if (bytes > left) return false;
    left -= bytes;
    return true;
  }
};

struct TensorInfo {
  std::string name;
  DType type = DType::F32;
  Shape ne = {1, 1, 1, 1};
  uint64_t offset = 0;  // from data_start; aligned, in bounds, overlapping no other tensor of the shard
  uint64_t n_bytes = 0;
};

struct Shard {
  uint32_t version = 0;
  uint64_t alignment = kDefaultAlignment;
  uint64_t data_start = 0;  // may lie beyond the end when there are no tensors
  Metadata metadata;
  std::vector<TensorInfo> tensors;  // in file order; names are not yet known to be unique
};

// `label`, usually the path, begins every message.
Result<Shard> parse_shard(std::span<const std::byte> bytes, const std::string& label, MemoryBudget& budget);

// general.alignment or its default, checked.
Result<uint64_t> alignment_of(const Metadata& metadata);

// Bytes of a tensor, or why there is no such tensor: dimension range, block size, overflow.
Result<uint64_t> checked_tensor_bytes(DType type, const Shape& ne);

// Why a tensor type id is refused, with the name that other programs give it: "type 137 IQ2_K of ik_llama.cpp is
// not supported". REQUIRES: dtype_from_id(id) is empty.
std::string refused_type_text(uint32_t id);

}  // namespace chimere::gguf
