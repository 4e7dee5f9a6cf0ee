#include "convert/checkpoint.h"

#include <cstring>
#include <filesystem>
#include <set>

#include "base/check.h"
#include "base/hash.h"
#include "convert/json_text.h"
#include "gguf/value.h"
#include "tensor/half.h"

namespace chimere::convert {
namespace {

namespace fs = std::filesystem;

// Sign, four bits of exponent with bias 7, three of mantissa; no infinity, and all ones is not a number.
float f8_e4m3_to_f32(uint8_t bits) {
  const int exponent = (bits >> 3) & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return __builtin_nanf("");
  const float magnitude = exponent == 0
                              ? static_cast<float>(mantissa) * 0x1p-9f
                              : static_cast<float>(8 + mantissa) * static_cast<float>(1 << exponent) * 0x1p-10f;
  return bits & 0x80 ? -magnitude : magnitude;
}

template <class Bits, class Decode>
void decode(const std::byte* data, uint64_t first, uint64_t stride, uint64_t n, float* out, Decode one) {
  const auto at = [&](uint64_t element) {
    Bits bits;
    std::memcpy(&bits, data + element * sizeof(Bits), sizeof(Bits));
    return one(bits);
  };
  if (stride == 1) {  // by itself, so that the compiler may use vectors
    for (uint64_t i = 0; i < n; ++i) out[i] = at(first + i);
  } else {
    for (uint64_t i = 0; i < n; ++i) out[i] = at(first + i * stride);
  }
}

// Names of the files that hold the tensors, each once.
Result<std::set<std::string>> shard_names(const std::string& folder) {
  const std::string index_path = folder + "/model.safetensors.index.json";
  std::error_code code;
  if (!fs::exists(index_path, code)) {
    if (fs::exists(folder + "/model.safetensors", code)) {
      return Result<std::set<std::string>>{std::set<std::string>{"model.safetensors"}};
    }
    return Error{Code::not_found,
                 folder + ": expected model.safetensors, or model.safetensors.index.json with the files it names"};
  }
  TRY_ASSIGN(const Json index, read_json(index_path));
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object()) {
    return Error{Code::corrupt, index_path + ": expected an object \"weight_map\""};
  }
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    const bool plain =
        file.is_string() && !file.get_ref<const std::string&>().empty() &&
        file.get_ref<const std::string&>().find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
    if (!plain) {
      return Error{Code::corrupt,
                   index_path + ": tensor " + gguf::quoted(tensor) + ": expected the name of a file beside it"};
    }
    names.insert(file.get<std::string>());
  }
  return Result<std::set<std::string>>{std::move(names)};
}

// Every tensor the index promises must be in the file it names.
Status check_index(const std::string& folder, const Checkpoint& checkpoint) {
  const std::string path = folder + "/model.safetensors.index.json";
  std::error_code code;
  if (!fs::exists(path, code)) return Ok{};
  TRY_ASSIGN(const Json index, read_json(path));
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    if (!checkpoint.find(tensor)) {
      return Error{Code::corrupt, folder + "/" + file.get<std::string>() + ": tensor " + gguf::quoted(tensor) +
                                      " is missing, though model.safetensors.index.json says it is there"};
    }
  }
  return Ok{};
}

constexpr uint64_t kSamples = 64, kSampleBytes = 4096;

uint64_t sampled_hash(std::span<const std::byte> bytes, uint64_t seed) {
  if (bytes.size() <= kSamples * kSampleBytes) return hash64(bytes, seed);
  for (uint64_t i = 0; i < kSamples; ++i) {
    const uint64_t at = (bytes.size() - kSampleBytes) / (kSamples - 1) * i;
    seed = hash64(bytes.subspan(at, kSampleBytes), seed);
  }
  return seed;
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::string& folder, const HfConfig& config) {
  Checkpoint checkpoint;
  TRY_ASSIGN(const std::vector<int64_t> block, config.find_ints("quantization_config/weight_block_size"));
  if (!block.empty()) {
    if (block.size() != 2 || block[0] < 1 || block[1] < 1) {
      return Error{Code::corrupt, folder + ": quantization_config.weight_block_size: expected two positive numbers"};
    }
    checkpoint.scale_block_ = {static_cast<uint64_t>(block[0]), static_cast<uint64_t>(block[1])};
  }
  TRY_ASSIGN(const std::set<std::string> names, shard_names(folder));
  for (const std::string& name : names) TRY(checkpoint.add_shard(folder, name));
  TRY(check_index(folder, checkpoint));
  return Result<Checkpoint>{std::move(checkpoint)};
}

Status Checkpoint::add_shard(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  std::error_code code;
  if (!fs::exists(path, code)) {
    return Error{Code::not_found, path + ": this file of the checkpoint is missing"};
  }
  TRY_ASSIGN(MappedFile file, MappedFile::open(path));
  TRY_ASSIGN(Safetensors stored, parse_safetensors(file.bytes(), path));
  aliases_.merge(stored.aliases);
  for (StoredTensor& tensor : stored.tensors) {
    tensor.shard = shards_.size();
    std::string key = tensor.name;
    const auto [place, added] = tensors_.emplace(std::move(key), std::move(tensor));
    if (!added) {
      return Error{Code::corrupt, path + ": tensor " + gguf::quoted(place->first) + " is also in " +
                                      shards_[place->second.shard].path};
    }
  }
  const auto time = fs::last_write_time(path, code).time_since_epoch().count();
  identity_ = hash64(name, identity_ ^ static_cast<uint64_t>(time));
  identity_ = sampled_hash(file.bytes(), identity_ ^ file.bytes().size());
  shards_.push_back({path, std::move(file)});
  return Ok{};
}

const StoredTensor* Checkpoint::find(std::string_view name) const {
  auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    if (const auto alias = aliases_.find(name); alias != aliases_.end()) found = tensors_.find(alias->second);
  }
  return found == tensors_.end() ? nullptr : &found->second;
}

const StoredTensor* Checkpoint::scales_of(const StoredTensor& tensor) const {
  if (tensor.type != StoredType::f8_e4m3 && tensor.type != StoredType::f8_e5m2) return nullptr;
  for (const char* suffix : {"_scale_inv", "_scale"}) {
    if (const StoredTensor* scales = find(tensor.name + suffix)) return scales;
  }
  return nullptr;
}

Status Checkpoint::read(const StoredTensor& tensor, uint64_t first, uint64_t stride, uint64_t n, float* out) const {
  CHECK(n == 0 || first + (n - 1) * stride < tensor.elems());
  const std::byte* data = tensor.bytes.data();
  switch (tensor.type) {
    case StoredType::f64:
      decode<double>(data, first, stride, n, out, [](double v) { return static_cast<float>(v); });
      return Ok{};
    case StoredType::f32: decode<float>(data, first, stride, n, out, [](float v) { return v; }); return Ok{};
    case StoredType::f16: decode<uint16_t>(data, first, stride, n, out, f16_to_f32); return Ok{};
    case StoredType::bf16: decode<uint16_t>(data, first, stride, n, out, bf16_to_f32); return Ok{};
    case StoredType::f8_e4m3:
      decode<uint8_t>(data, first, stride, n, out, f8_e4m3_to_f32);
      return apply_scales(tensor, first, stride, n, out);
    case StoredType::f8_e5m2:
      // The upper half of an IEEE half.
      decode<uint8_t>(data, first, stride, n, out,
                      [](uint8_t bits) { return f16_to_f32(static_cast<uint16_t>(bits << 8)); });
      return apply_scales(tensor, first, stride, n, out);
    case StoredType::u8:
    case StoredType::other: break;
  }
  return Error{Code::unsupported, shards_[tensor.shard].path + ": tensor " + gguf::quoted(tensor.name) +
                                      ": expected F32, F16, BF16 or FP8 values, found a type of whole numbers"};
}

Status Checkpoint::apply_scales(const StoredTensor& tensor, uint64_t first, uint64_t stride, uint64_t n,
                                float* out) const {
  const StoredTensor* scales = scales_of(tensor);
  const auto wrong = [&](const std::string& what) {
    return Error{Code::corrupt, shards_[tensor.shard].path + ": tensor " + gguf::quoted(tensor.name) + ": " + what};
  };
  if (!scales) return wrong("FP8 without scales: expected a tensor " + gguf::quoted(tensor.name + "_scale_inv"));
  const bool readable =
      scales->type == StoredType::f32 || scales->type == StoredType::bf16 || scales->type == StoredType::f16;
  if (!readable) return wrong("its scales are not floats");
  float value = 0;
  if (scales->elems() == 1) {
    TRY(read(*scales, 0, 1, 1, &value));
    for (uint64_t i = 0; i < n; ++i) out[i] *= value;
    return Ok{};
  }
  if (tensor.shape.size() < 2)
    return wrong("scales of a vector: expected one number, found " + shape_text(scales->shape));
  const uint64_t columns = tensor.shape.back(), rows = tensor.shape[tensor.shape.size() - 2];
  const uint64_t matrices = columns == 0 || rows == 0 ? 0 : tensor.elems() / columns / rows;
  uint64_t block_rows = 1, block_columns = columns;  // one scale for each row
  if (scales->elems() != rows * matrices) {
    block_rows = scale_block_[0];
    block_columns = scale_block_[1];
  }
  const uint64_t down = (rows + block_rows - 1) / block_rows, across = (columns + block_columns - 1) / block_columns;
  if (scales->elems() != matrices * down * across) {
    return wrong("shape " + shape_text(tensor.shape) + " does not fit its scales " + shape_text(scales->shape) +
                 " in blocks of " + std::to_string(scale_block_[0]) + " x " + std::to_string(scale_block_[1]));
  }
  uint64_t at = UINT64_MAX;
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t element = first + i * stride, row = element / columns, column = element % columns;
    const uint64_t index = (row / rows * down + row % rows / block_rows) * across + column / block_columns;
    if (index != at) TRY(read(*scales, at = index, 1, 1, &value));
    out[i] *= value;
  }
  return Ok{};
}

void Checkpoint::drop_pages(const StoredTensor& tensor) const {
  const MappedFile& file = shards_[tensor.shard].file;
  file.drop(static_cast<size_t>(tensor.bytes.data() - file.bytes().data()), tensor.bytes.size());
}

}  // namespace chimere::convert
