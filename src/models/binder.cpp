#include "models/binder.h"

#include <cmath>
#include <cstring>

#include "tensor/dequantize.h"

namespace chimere::models {
namespace {

Shape full_shape(std::initializer_list<uint64_t> dims) {
  Shape shape = {1, 1, 1, 1};
  size_t i = 0;
  for (uint64_t d : dims) shape[i++] = d;
  return shape;
}

bool is_float(DType type) { return type == DType::F32 || type == DType::F16 || type == DType::BF16; }

bool is_integer(DType type) {
  return type == DType::I8 || type == DType::I16 || type == DType::I32 || type == DType::I64 || type == DType::F64;
}

}  // namespace

void Binder::fail(Error error) {
  if (problems_.empty()) problems_.push_back(std::move(error));
}

Status Binder::status() const {
  if (problems_.empty()) return Ok{};
  return problems_.front();
}

Result<Program> Binder::finish() {
  TRY(status());
  return Result<Program>{std::move(program_)};
}

bool Binder::has(const std::string& name) { return source_.find(name, {1, 1, 1, 1}, false) != nullptr; }

const TensorView* Binder::require(const std::string& name, const Shape& shape) {
  const TensorView* tensor = source_.find(name, shape, true);
  if (!tensor) {
    fail({Code::corrupt, "tensor '" + name + "' is missing: expected shape " + to_string(shape)});
    return nullptr;
  }
  if (tensor->ne != shape) {
    fail({Code::corrupt,
          "tensor '" + name + "': expected shape " + to_string(shape) + ", found " + to_string(tensor->ne)});
    return nullptr;
  }
  if (is_integer(tensor->type)) {
    fail({Code::unsupported, "tensor '" + name + "': expected a float or quantised type, found " +
                                 std::string(chimere::name(tensor->type))});
    return nullptr;
  }
  return tensor;
}

MatrixId Binder::matrix(const std::string& name, std::initializer_list<uint64_t> shape) {
  const TensorView* tensor = require(name, full_shape(shape));
  if (!tensor) return 0;
  // A factor beside the weight (NVFP4 files have one) would have to multiply every product; ignoring it would be
  // wrong.
  constexpr std::string_view kSuffix = ".weight";
  if (name.size() > kSuffix.size() && name.ends_with(kSuffix)) {
    const std::string scale = name.substr(0, name.size() - kSuffix.size()) + ".scale";
    if (has(scale)) fail({Code::unsupported, "tensor '" + scale + "': weights with a second-level scale"});
  }
  program_.matrices.push_back(*tensor);
  return static_cast<MatrixId>(program_.matrices.size() - 1);
}

MatrixId Binder::matrix_if_present(const std::string& name, std::initializer_list<uint64_t> shape) {
  return source_.find(name, full_shape(shape), false) ? matrix(name, shape) : kNone;
}

VectorId Binder::vector(const std::string& name, uint64_t n) {
  const TensorView* tensor = source_.find(name, {n, 1, 1, 1}, true);
  if (!tensor) {
    fail({Code::corrupt, "tensor '" + name + "' is missing: expected " + std::to_string(n) + " values"});
    return 0;
  }
  if (tensor->elems() != n) {
    fail({Code::corrupt,
          "tensor '" + name + "': expected " + std::to_string(n) + " values, found shape " + to_string(tensor->ne)});
    return 0;
  }
  if (!is_float(tensor->type)) {
    fail({Code::unsupported,
          "tensor '" + name + "': expected F32, F16 or BF16, found " + std::string(chimere::name(tensor->type))});
    return 0;
  }
  return decoded(*tensor);
}

VectorId Binder::flattened(const std::string& name, std::initializer_list<uint64_t> shape) {
  const TensorView* tensor = require(name, full_shape(shape));
  if (!tensor) return 0;
  return decoded(*tensor);
}

VectorId Binder::decoded(const TensorView& tensor) {
  std::vector<float> values(tensor.elems());
  for (uint64_t r = 0; r < tensor.rows(); ++r) {
    dequantize_row(tensor.type, tensor.row(r), values.data() + r * tensor.ne[0], static_cast<int64_t>(tensor.ne[0]));
  }
  for (float v : values) {
    if (!std::isfinite(v)) {
      fail({Code::corrupt, "tensor '" + std::string(tensor.name) + "' holds a value that is not finite"});
      return 0;
    }
  }
  program_.vectors.push_back(std::move(values));
  return static_cast<VectorId>(program_.vectors.size() - 1);
}

VectorId Binder::vector_if_present(const std::string& name, uint64_t n) {
  return source_.find(name, {n, 1, 1, 1}, false) ? vector(name, n) : kNone;
}

VectorId Binder::ones(uint64_t n) {
  program_.vectors.emplace_back(n, 1.0f);
  return static_cast<VectorId>(program_.vectors.size() - 1);
}

MatrixId Binder::gathered_rows(const std::string& name, std::initializer_list<uint64_t> shape,
                               std::span<const uint64_t> rows, const std::string& new_name) {
  const TensorView* tensor = require(name, full_shape(shape));
  if (!tensor) return 0;
  const uint64_t bytes = tensor->row_bytes();
  auto owned = std::make_shared<OwnedTensor>();
  owned->name = new_name;
  owned->source = name;
  owned->data.resize(bytes * rows.size() * tensor->ne[2]);
  std::byte* to = owned->data.data();
  for (uint64_t e = 0; e < tensor->ne[2]; ++e) {
    for (uint64_t r : rows) {
      std::memcpy(to, tensor->row(e * tensor->ne[1] + r), bytes);
      to += bytes;
    }
  }
  TensorView view = *tensor;
  view.name = owned->name;
  view.ne[1] = rows.size();
  view.data = owned->data.data();
  program_.owned.push_back(std::move(owned));
  program_.matrices.push_back(view);
  return static_cast<MatrixId>(program_.matrices.size() - 1);
}

MatrixId Binder::columns(const std::string& name, std::initializer_list<uint64_t> shape, uint64_t first, uint64_t n,
                         const std::string& new_name) {
  const TensorView* tensor = require(name, full_shape(shape));
  if (!tensor) return 0;
  const auto block = static_cast<uint64_t>(info(tensor->type).block_elems);
  if (first % block != 0 || n % block != 0) {
    fail({Code::unsupported, "tensor '" + name + "': expected parts of " + std::to_string(n) + " columns to be whole " +
                                 "blocks of its type, found " + std::string(chimere::name(tensor->type)) +
                                 " with blocks of " + std::to_string(block)});
    return 0;
  }
  const uint64_t skipped = row_bytes(tensor->type, first), bytes = row_bytes(tensor->type, n);
  const auto prefix = static_cast<uint64_t>(info(tensor->type).row_prefix_bytes);
  auto owned = std::make_shared<OwnedTensor>();
  owned->name = new_name;
  owned->data.resize(bytes * tensor->ne[1]);
  for (uint64_t r = 0; r < tensor->ne[1]; ++r) {
    std::memcpy(owned->data.data() + r * bytes, tensor->row(r), prefix);
    std::memcpy(owned->data.data() + r * bytes + prefix, tensor->row(r) + skipped, bytes - prefix);
  }
  TensorView view = *tensor;
  view.name = owned->name;
  view.ne[0] = n;
  view.data = owned->data.data();
  program_.owned.push_back(std::move(owned));
  program_.matrices.push_back(view);
  return static_cast<MatrixId>(program_.matrices.size() - 1);
}

BufferId Binder::buffer(const std::string& name, uint64_t width) {
  program_.buffers.push_back({name, static_cast<int>(width)});
  return static_cast<BufferId>(program_.buffers.size() - 1);
}

RopeId Binder::rope(Rope rope) {
  program_.ropes.push_back(std::move(rope));
  return static_cast<RopeId>(program_.ropes.size() - 1);
}

int Binder::kv_layer(KvLayer layer) {
  program_.kv_layers.push_back(layer);
  return static_cast<int>(program_.kv_layers.size() - 1);
}

int Binder::recurrent_layer(RecurrentLayer layer) {
  program_.recurrent_layers.push_back(layer);
  return static_cast<int>(program_.recurrent_layers.size() - 1);
}

}  // namespace chimere::models
