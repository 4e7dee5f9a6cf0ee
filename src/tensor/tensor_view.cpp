#include "tensor/tensor_view.h"

namespace chimere {

std::string to_string(const Shape& shape) {
  size_t last = shape.size();
  while (last > 1 && shape[last - 1] == 1) --last;
  std::string out = "{";
  for (size_t i = 0; i < last; ++i) {
    if (i) out += ", ";
    out += std::to_string(shape[i]);
  }
  return out + "}";
}

}  // namespace chimere
