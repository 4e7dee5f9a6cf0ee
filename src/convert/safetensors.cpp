#include "convert/safetensors.h"

#include <algorithm>
#include <cstring>

#include "convert/json_text.h"
#include "gguf/value.h"

namespace chimere::convert {
namespace {

constexpr size_t kMaxDims = 8;
constexpr uint64_t kMaxDimension = uint64_t{1} << 40;

struct TypeName {
  const char* name;
  StoredType type;
  size_t bytes;
};
constexpr TypeName kTypes[] = {
    {"F64", StoredType::f64, 8},    {"F32", StoredType::f32, 4},         {"F16", StoredType::f16, 2},
    {"BF16", StoredType::bf16, 2},  {"F8_E4M3", StoredType::f8_e4m3, 1}, {"F8_E5M2", StoredType::f8_e5m2, 1},
    {"F8_E8M0", StoredType::u8, 1}, {"U8", StoredType::u8, 1},           {"I8", StoredType::other, 1},
    {"BOOL", StoredType::other, 1}, {"I16", StoredType::other, 2},       {"U16", StoredType::other, 2},
    {"I32", StoredType::other, 4},  {"U32", StoredType::other, 4},       {"I64", StoredType::other, 8},
    {"U64", StoredType::other, 8},
};

struct Place {
  std::string where;  // label and tensor, for messages

  Error wrong(const std::string& what) const { return Error{Code::corrupt, where + ": " + what}; }
};

Result<StoredTensor> parse_tensor(const std::string& name, const Json& entry, std::span<const std::byte> data,
                                  const std::string& label) {
  const Place place{label + ": tensor " + gguf::quoted(name)};
  if (!entry.is_object()) return place.wrong("expected an object with dtype, shape and data_offsets");
  const auto dtype = entry.find("dtype"), shape = entry.find("shape"), offsets = entry.find("data_offsets");
  if (dtype == entry.end() || shape == entry.end() || offsets == entry.end() || !dtype->is_string()) {
    return place.wrong("expected dtype, shape and data_offsets");
  }
  StoredTensor tensor;
  tensor.name = name;
  const TypeName* type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) {
    return dtype->get_ref<const std::string&>() == t.name;
  });
  if (type == std::end(kTypes)) return place.wrong("unknown dtype " + gguf::quoted(dtype->get<std::string>()));
  tensor.type = type->type;
  if (!shape->is_array() || shape->size() > kMaxDims) return place.wrong("expected a shape of at most 8 dimensions");
  uint64_t n_bytes = type->bytes;
  for (const Json& d : *shape) {
    if (!d.is_number_unsigned() || d.get<uint64_t>() >= kMaxDimension)
      return place.wrong("a dimension is out of range");
    tensor.shape.push_back(d.get<uint64_t>());
    if (__builtin_mul_overflow(n_bytes, tensor.shape.back(), &n_bytes)) return place.wrong("its size overflows");
  }
  const bool pair = offsets->is_array() && offsets->size() == 2 && (*offsets)[0].is_number_unsigned() &&
                    (*offsets)[1].is_number_unsigned();
  if (!pair) return place.wrong("expected data_offsets of two numbers");
  const uint64_t begin = (*offsets)[0].get<uint64_t>(), end = (*offsets)[1].get<uint64_t>();
  if (end < begin || end - begin != n_bytes) {
    return place.wrong("shape " + shape_text(tensor.shape) + " takes " + std::to_string(n_bytes) +
                       " bytes, found data_offsets " + std::to_string(begin) + " to " + std::to_string(end));
  }
  if (end > data.size()) {
    return place.wrong("the file is damaged or cut short: its data ends at byte " + std::to_string(data.size()) +
                       ", expected " + std::to_string(end));
  }
  tensor.bytes = data.subspan(begin, n_bytes);
  return Result<StoredTensor>{std::move(tensor)};
}

}  // namespace

uint64_t StoredTensor::elems() const {
  uint64_t n = 1;
  for (const uint64_t d : shape) n *= d;
  return n;
}

std::string shape_text(const std::vector<uint64_t>& shape) {
  std::string out = "[";
  for (const uint64_t d : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(d);
  return out + "]";
}

size_t bytes_of(StoredType type) {
  for (const TypeName& t : kTypes) {
    if (t.type == type && type != StoredType::other) return t.bytes;
  }
  return 0;
}

Result<Safetensors> parse_safetensors(std::span<const std::byte> file, const std::string& label) {
  if (is_lfs_pointer({reinterpret_cast<const char*>(file.data()), file.size()})) return lfs_pointer(label);
  uint64_t length = 0;
  if (file.size() < sizeof(length)) {
    return Error{Code::corrupt,
                 label + ": expected a safetensors file, found " + std::to_string(file.size()) + " bytes"};
  }
  std::memcpy(&length, file.data(), sizeof(length));
  file = file.subspan(sizeof(length));
  if (length > file.size() || length > kMaxJsonBytes) {
    return Error{Code::corrupt, label + ": its header should take " + std::to_string(length) +
                                    " bytes, but the file has " + std::to_string(file.size()) + " and the limit is " +
                                    std::to_string(kMaxJsonBytes)};
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()), length);
  TRY_ASSIGN(const Json header, parse_json(text, label + ": header"));
  if (!header.is_object()) return Error{Code::corrupt, label + ": header: expected an object"};
  Safetensors out;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    TRY_ASSIGN(StoredTensor tensor, parse_tensor(name, entry, file.subspan(length), label));
    out.tensors.push_back(std::move(tensor));
  }
  if (const auto notes = header.find("__metadata__"); notes != header.end() && notes->is_object()) {
    for (const auto& [alias, target] : notes->items()) {
      const bool is_alias = target.is_string() && !header.contains(alias) && target != "__metadata__" &&
                            header.contains(target.get_ref<const std::string&>());
      if (is_alias) out.aliases.emplace(alias, target.get<std::string>());
    }
  }
  return Result<Safetensors>{std::move(out)};
}

}  // namespace chimere::convert
