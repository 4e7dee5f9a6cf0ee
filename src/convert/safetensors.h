// safetensors.h  The header of a safetensors file: which tensors lie where. Hostile input.
//
//   u64 length of the header | header: JSON | data
//   {"name": {"dtype": "BF16", "shape": [64, 32], "data_offsets": [begin, end]}, "__metadata__": {...}}
//
// Offsets count from the end of the header. Every one is checked against the size of the file and of its shape.
// A tensor that shares its memory with another is written once; "__metadata__" then has its name, with the name under
// which it was written as the value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace chimere::convert {

enum class StoredType { f64, f32, f16, bf16, f8_e4m3, f8_e5m2, u8, other };

struct StoredTensor {
  std::string name;
  StoredType type = StoredType::other;
  std::vector<uint64_t> shape;  // as PyTorch prints it: the last dimension varies fastest
  std::span<const std::byte> bytes;
  size_t shard = 0;  // which file of the checkpoint it lies in

  uint64_t elems() const;
};

// "[64, 32]"
std::string shape_text(const std::vector<uint64_t>& shape);
// Bytes of one element; 0 for `other`.
size_t bytes_of(StoredType type);

struct Safetensors {
  std::vector<StoredTensor> tensors;                        // their bytes point into the file
  std::map<std::string, std::string, std::less<>> aliases;  // other names of tensors of this file
};

// `label` opens every message, usually the path.
Result<Safetensors> parse_safetensors(std::span<const std::byte> file, const std::string& label);

}  // namespace chimere::convert
