#include "gguf/summary.h"

#include <algorithm>
#include <map>

#include "gguf/value.h"

namespace chimere::gguf {
namespace {

constexpr size_t kMaxTextBytes = 80;
constexpr size_t kMaxNameTextBytes = 256;
constexpr size_t kMaxShownElements = 8;

// Length of the UTF-8 character at the start of `text` when it is well formed and printable, else 0. Refused are
// overlong forms, surrogates, and the control characters U+0000..1F and U+007F..9F.
size_t printable_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || length > text.size()) return 0;
  uint32_t code = lead & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0xa0, 0x800, 0x10000};
  if (code < kSmallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return 0;
  return length;
}

std::string escape(unsigned char byte) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (byte) {
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: return {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  }
}

std::string element_text(uint64_t value, ValueType) { return std::to_string(value); }
std::string element_text(int64_t value, ValueType) { return std::to_string(value); }
std::string element_text(double value, ValueType type) { return float_text(value, type == ValueType::f32); }
std::string element_text(bool value, ValueType) { return value ? "true" : "false"; }
std::string element_text(const std::string& value, ValueType) { return printable(value, kMaxTextBytes); }

struct ShortText {
  ValueType type;

  template <class T>
  std::string operator()(const T& value) const {
    return element_text(value, type);
  }

  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    std::string out = "[";
    if (std::is_same_v<T, std::string> || values.size() > kMaxShownElements) {
      out += std::to_string(values.size());
      return out.append(" ").append(name(type)).append(values.size() == 1 ? "]" : "s]");
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out += ", ";
      out += element_text(static_cast<T>(values[i]), type);
    }
    return out + "]";
  }
};

std::string type_text(const Value& value) {
  std::string out(name(value.type));
  if (value.is_array) out.append("[").append(std::to_string(value.array_size())).append("]");
  return out;
}

std::string string_or_empty(const Metadata& metadata, std::string_view key) {
  const auto text = metadata.get_string(key);
  return text ? printable(*text, kMaxNameTextBytes) : std::string();
}

}  // namespace

std::string printable(std::string_view text, size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const size_t length = printable_character(text);
    const std::string next = length > 0 ? std::string(text.substr(0, length)) : escape(text[0]);
    if (out.size() + next.size() > max_bytes) return out + "...";
    out += next;
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string short_text(const Value& value) { return std::visit(ShortText{value.type}, value.data); }

Summary summarize(const File& file) {
  Summary out;
  const Metadata& metadata = file.metadata();
  out.architecture = string_or_empty(metadata, "general.architecture");
  out.model_name = string_or_empty(metadata, "general.name");
  out.version = file.version();
  out.n_shards = file.n_shards();
  out.file_bytes = file.size_bytes();
  out.n_tensors = file.tensors().size();

  std::map<DType, TypeUse> types;
  for (const TensorView& tensor : file.tensors()) {
    TypeUse& use = types[tensor.type];
    use.type = tensor.type;
    use.n_tensors += 1;
    use.n_parameters += tensor.elems();
    use.n_bytes += tensor.size_bytes();
    out.n_parameters += tensor.elems();
    out.tensor_bytes += tensor.size_bytes();
  }
  for (const auto& [type, use] : types) out.types.push_back(use);
  std::stable_sort(out.types.begin(), out.types.end(),
                   [](const TypeUse& a, const TypeUse& b) { return a.n_bytes > b.n_bytes; });

  for (const auto& [key, value] : metadata.entries()) {
    out.metadata.push_back({printable(key, kMaxNameTextBytes), type_text(value), short_text(value)});
  }
  return out;
}

}  // namespace chimere::gguf
