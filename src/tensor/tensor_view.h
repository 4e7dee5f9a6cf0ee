// tensor_view.h  A non-owning view of a tensor in its file format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace chimere {

// GGUF order: ne[0] is the row length and varies fastest; missing dimensions are 1.
using Shape = std::array<uint64_t, 4>;

// "{2048, 512, 256}", trailing ones dropped.
std::string to_string(const Shape& shape);

struct TensorView {
  std::string_view name;  // lives as long as the file
  DType type = DType::F32;
  Shape ne = {1, 1, 1, 1};
  const std::byte* data = nullptr;

  uint64_t rows() const { return ne[1] * ne[2] * ne[3]; }
  uint64_t elems() const { return ne[0] * rows(); }
  uint64_t row_bytes() const { return chimere::row_bytes(type, ne[0]); }
  uint64_t size_bytes() const { return row_bytes() * rows(); }
  const std::byte* row(uint64_t r) const { return data + r * row_bytes(); }
};

}  // namespace chimere
