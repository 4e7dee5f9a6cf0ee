// Parsing one file. The order is that of the file: header, keys and values, tensor infos, then the checks that need
// all of them (alignment, bounds, overlaps). Every count is compared with the bytes that remain before anything is
// reserved for it, and every table is paid for from the memory budget.
#include "gguf/shard.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "gguf/cursor.h"
#include "gguf/value.h"

namespace chimere::gguf {
namespace {

constexpr uint64_t kHeaderBytes = 24;
// The smallest records there can be, with room for one byte less than a non-empty name needs.
constexpr uint64_t kMinKeyBytes = 13;
constexpr uint64_t kMinTensorBytes = 24;
// What the tables take for one entry besides the bytes of its strings: the entry, its index node, heap overhead.
constexpr uint64_t kEntryCost = 256;

bool multiply(uint64_t a, uint64_t b, uint64_t& out) {
  if (b != 0 && a > std::numeric_limits<uint64_t>::max() / b) return false;
  out = a * b;
  return true;
}

std::string text(uint64_t n) { return std::to_string(n); }

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, const std::string& label, MemoryBudget& budget)
      : bytes_(bytes), cursor_(bytes), label_(label), budget_(budget) {}

  Result<Shard> parse() {
    TRY(read_header());
    TRY(read_metadata());
    TRY(read_tensor_infos());
    TRY(check_layout());
    return Result<Shard>{std::move(shard_)};
  }

 private:
  Error fail(Code code, const std::string& message) const { return Error{code, label_ + ": " + message}; }
  Error corrupt(const std::string& message) const { return fail(Code::corrupt, message); }
  Error corrupt(const std::string& where, const std::string& message) const { return corrupt(where + ": " + message); }

  Error truncated(const std::string& where, uint64_t need) const {
    return corrupt(where, "needs " + text(need) + " bytes at byte " + text(cursor_.position()) + ", but only " +
                              text(cursor_.remaining()) +
                              " remain: the file ends too early; was it copied or downloaded whole?");
  }

  Status charge(const std::string& where, uint64_t bytes) {
    if (budget_.take(bytes)) return Ok{};
    return fail(Code::exhausted, where + ": the tables of the file need more than the limit of " +
                                     text(MemoryBudget{}.left >> 20) + " MiB of memory");
  }

  template <class T>
  Status read(const std::string& where, T& out) {
    if (cursor_.read(out)) return Ok{};
    return truncated(where, sizeof(T));
  }

  Status read_string(const std::string& where, uint64_t limit, std::string& out) {
    uint64_t length = 0;
    TRY(read(where, length));
    if (length > limit) {
      return corrupt(where, "length " + text(length) + " at byte " + text(cursor_.position() - 8) +
                                " exceeds the limit of " + text(limit) + " bytes");
    }
    if (length > cursor_.remaining()) return truncated(where, length);
    TRY(charge(where, length));
    const auto bytes = cursor_.take(length);
    out.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return Ok{};
  }

  // A key or a tensor name.
  Status read_name(const std::string& where, std::string& out) {
    const uint64_t at = cursor_.position();
    TRY(read_string(where, kMaxNameBytes, out));
    if (out.empty()) return corrupt(where, "empty name at byte " + text(at));
    if (out.find('\0') != std::string::npos) return corrupt(where, "NUL byte in the name " + quoted(out));
    return Ok{};
  }

  Status read_header() {
    if (bytes_.size() < kHeaderBytes) {
      return corrupt("not a GGUF file: " + text(bytes_.size()) + " bytes long, a header has " + text(kHeaderBytes));
    }
    const auto magic = cursor_.take(4);
    const std::string_view found(reinterpret_cast<const char*>(magic.data()), magic.size());
    if (found != "GGUF") {
      const std::string hint = found == "vers" ? " (a Git LFS pointer? the real file was not downloaded)" : "";
      return corrupt("not a GGUF file: expected it to start with 'GGUF', found " + quoted(found) + hint);
    }
    TRY(read("header", shard_.version));
    const uint32_t version = shard_.version;
    if (version != 0 && (version & 0xffff) == 0) {
      return fail(Code::unsupported, "byte-swapped file (version field 0x" + hex(version) +
                                         "): written for big-endian machines, which is not supported");
    }
    if (version == 1) {
      return fail(Code::unsupported, "GGUF version 1 is not supported, expected 2 or 3: convert the file anew");
    }
    if (version != 2 && version != 3) {
      return fail(Code::unsupported, "unknown GGUF version " + text(version) + ", expected 2 or 3");
    }
    TRY(read("header", n_tensors_));
    TRY(read("header", n_keys_));
    if (n_keys_ > cursor_.remaining() / kMinKeyBytes) {
      return corrupt("header: " + text(n_keys_) + " keys cannot fit in the " + text(cursor_.remaining()) +
                     " bytes that remain");
    }
    if (n_tensors_ > cursor_.remaining() / kMinTensorBytes) {
      return corrupt("header: " + text(n_tensors_) + " tensors cannot fit in the " + text(cursor_.remaining()) +
                     " bytes that remain");
    }
    return Ok{};
  }

  static std::string hex(uint32_t value) {
    std::string out;
    for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[(value >> shift) & 15];
    return out;
  }

  Status read_metadata() {
    for (uint64_t i = 0; i < n_keys_; ++i) {
      const std::string where = "key " + text(i + 1) + " of " + text(n_keys_);
      TRY(charge(where, kEntryCost));
      const uint64_t at = cursor_.position();
      std::string key;
      TRY(read_name(where, key));
      TRY(charge(where, key.size()));  // once more, for the index
      if (shard_.metadata.contains(key)) return corrupt("key " + quoted(key) + " appears again at byte " + text(at));
      Value value;
      TRY(read_value("key " + quoted(key), value));
      shard_.metadata.set(std::move(key), std::move(value));
    }
    return Ok{};
  }

  Status read_type(const std::string& where, const char* what, ValueType& out) {
    uint32_t id = 0;
    TRY(read(where, id));
    const auto type = value_type_from_id(id);
    if (!type) {
      return corrupt(where, "unknown " + std::string(what) + " " + text(id) + " at byte " +
                                text(cursor_.position() - 4) + ", expected 0..12");
    }
    out = *type;
    return Ok{};
  }

  Status read_value(const std::string& where, Value& value) {
    TRY(read_type(where, "value type", value.type));
    uint64_t count = 1;
    if (value.type == ValueType::array) {
      value.is_array = true;
      TRY(read_type(where, "element type", value.type));
      if (value.type == ValueType::array) {
        return fail(Code::unsupported, where + ": arrays of arrays are not supported");
      }
      TRY(read(where, count));
      if (count > kMaxArrayElements) {
        return corrupt(where, "array of " + text(count) + " elements exceeds the limit of " + text(kMaxArrayElements));
      }
    }
    // No overflow: at most 2^30 elements of at most 8 bytes.
    const uint64_t need = count * min_element_bytes(value.type);
    if (need > cursor_.remaining()) return truncated(where + " (" + text(count) + " " + type_text(value) + ")", need);

    switch (value.type) {
      case ValueType::u8: return read_numbers<uint8_t, uint64_t>(where, count, value);
      case ValueType::u16: return read_numbers<uint16_t, uint64_t>(where, count, value);
      case ValueType::u32: return read_numbers<uint32_t, uint64_t>(where, count, value);
      case ValueType::u64: return read_numbers<uint64_t, uint64_t>(where, count, value);
      case ValueType::i8: return read_numbers<int8_t, int64_t>(where, count, value);
      case ValueType::i16: return read_numbers<int16_t, int64_t>(where, count, value);
      case ValueType::i32: return read_numbers<int32_t, int64_t>(where, count, value);
      case ValueType::i64: return read_numbers<int64_t, int64_t>(where, count, value);
      case ValueType::f32: return read_numbers<float, double>(where, count, value);
      case ValueType::f64: return read_numbers<double, double>(where, count, value);
      case ValueType::boolean: return read_numbers<uint8_t, bool>(where, count, value);
      case ValueType::string: return read_strings(where, count, value);
      case ValueType::array: break;
    }
    return corrupt(where, "unknown value type");
  }

  static std::string type_text(const Value& value) {
    return std::string(name(value.type)) + (value.is_array ? " elements" : "");
  }

  // One number or an array of them, widened from `Stored` to `Held`. The caller checked that the bytes are there.
  template <class Stored, class Held>
  Status read_numbers(const std::string& where, uint64_t count, Value& value) {
    std::vector<Held> values;
    if (value.is_array) {
      TRY(charge(where, count * (std::is_same_v<Held, bool> ? 1 : sizeof(Held))));
      values.reserve(count);
    }
    for (uint64_t i = 0; i < count; ++i) {
      Stored stored{};
      TRY(read(where, stored));
      const auto held = static_cast<Held>(stored);
      if (!value.is_array) {
        value.data = held;
        return Ok{};
      }
      values.push_back(held);
    }
    value.data = std::move(values);
    return Ok{};
  }

  Status read_strings(const std::string& where, uint64_t count, Value& value) {
    if (!value.is_array) {
      std::string out;
      TRY(read_string(where, kMaxStringBytes, out));
      value.data = std::move(out);
      return Ok{};
    }
    TRY(charge(where, count * sizeof(std::string)));
    std::vector<std::string> values(count);
    for (uint64_t i = 0; i < count; ++i) {
      // The element's place is spelt out only when it is refused: a vocabulary has hundreds of thousands of them.
      if (auto status = read_string(where, kMaxStringBytes, values[i]); !status) {
        status.error().message += " (element " + text(i) + " of " + text(count) + ")";
        return status;
      }
    }
    value.data = std::move(values);
    return Ok{};
  }

  Status read_tensor_infos() {
    for (uint64_t i = 0; i < n_tensors_; ++i) {
      const std::string place = "tensor " + text(i + 1) + " of " + text(n_tensors_);
      TRY(charge(place, kEntryCost));
      TensorInfo tensor;
      TRY(read_name(place, tensor.name));
      const std::string where = "tensor " + quoted(tensor.name);
      TRY(charge(where, tensor.name.size()));  // once more, for the index
      uint32_t n_dims = 0;
      TRY(read(where, n_dims));
      if (n_dims < 1 || n_dims > tensor.ne.size()) {
        return corrupt(where, text(n_dims) + " dimensions at byte " + text(cursor_.position() - 4) + ", expected 1..4");
      }
      for (uint32_t d = 0; d < n_dims; ++d) TRY(read(where, tensor.ne[d]));
      uint32_t type_id = 0;
      TRY(read(where, type_id));
      const auto type = dtype_from_id(type_id);
      if (!type) return fail(Code::unsupported, where + ": " + refused_type_text(type_id));
      tensor.type = *type;
      auto n_bytes = checked_tensor_bytes(tensor.type, tensor.ne);
      if (!n_bytes) return corrupt(where, n_bytes.error().message);
      tensor.n_bytes = *n_bytes;
      TRY(read(where, tensor.offset));
      shard_.tensors.push_back(std::move(tensor));
    }
    return Ok{};
  }

  Status check_layout() {
    auto alignment = alignment_of(shard_.metadata);
    if (!alignment) return corrupt(alignment.error().message);
    shard_.alignment = *alignment;
    // No overflow: the position is at most the size of an object in memory.
    shard_.data_start = (cursor_.position() + shard_.alignment - 1) / shard_.alignment * shard_.alignment;
    if (shard_.tensors.empty()) return Ok{};
    if (shard_.data_start > bytes_.size()) {
      return corrupt("the data section starts at byte " + text(shard_.data_start) + ", beyond the end of the file at " +
                     text(bytes_.size()));
    }
    const uint64_t data_bytes = bytes_.size() - shard_.data_start;
    for (const TensorInfo& tensor : shard_.tensors) TRY(check_bounds(tensor, data_bytes));
    return check_overlaps();
  }

  Status check_bounds(const TensorInfo& tensor, uint64_t data_bytes) const {
    const std::string where = "tensor " + quoted(tensor.name);
    if (tensor.offset % shard_.alignment != 0) {
      return corrupt(where,
                     "offset " + text(tensor.offset) + " is not a multiple of the alignment " + text(shard_.alignment));
    }
    if (tensor.offset > data_bytes || tensor.n_bytes > data_bytes - tensor.offset) {
      return corrupt(where, text(tensor.n_bytes) + " bytes (" + std::string(name(tensor.type)) + " " +
                                to_string(tensor.ne) + ") at offset " + text(tensor.offset) +
                                " end beyond the data section of " + text(data_bytes) + " bytes (starts at byte " +
                                text(shard_.data_start) + "): is the file complete?");
    }
    return Ok{};
  }

  Status check_overlaps() const {
    std::vector<size_t> order(shard_.tensors.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto& tensors = shard_.tensors;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return tensors[a].offset < tensors[b].offset; });
    for (size_t i = 1; i < order.size(); ++i) {
      const TensorInfo& before = tensors[order[i - 1]];
      const TensorInfo& after = tensors[order[i]];
      if (before.offset + before.n_bytes > after.offset) {
        return corrupt("tensor " + quoted(after.name),
                       "offset " + text(after.offset) + " lies inside tensor " + quoted(before.name) +
                           ", which takes bytes " + text(before.offset) + " to " +
                           text(before.offset + before.n_bytes) + " of the data section");
      }
    }
    return Ok{};
  }

  std::span<const std::byte> bytes_;
  Cursor cursor_;
  const std::string& label_;
  MemoryBudget& budget_;
  uint64_t n_tensors_ = 0;
  uint64_t n_keys_ = 0;
  Shard shard_;
};

}  // namespace

Result<Shard> parse_shard(std::span<const std::byte> bytes, const std::string& label, MemoryBudget& budget) {
  return Parser(bytes, label, budget).parse();
}

Result<uint64_t> alignment_of(const Metadata& metadata) {
  constexpr std::string_view kKey = "general.alignment";
  TRY_ASSIGN(const int64_t alignment, metadata.get_int_or(kKey, kMinAlignment, kMaxAlignment, kDefaultAlignment));
  if ((alignment & (alignment - 1)) != 0) {
    return Error{Code::invalid_argument,
                 "key " + quoted(kKey) + ": expected a power of two, found " + std::to_string(alignment)};
  }
  return static_cast<uint64_t>(alignment);
}

Result<uint64_t> checked_tensor_bytes(DType type, const Shape& ne) {
  for (size_t d = 0; d < ne.size(); ++d) {
    if (ne[d] < 1 || ne[d] >= kMaxDimension) {
      return Error{Code::invalid_argument,
                   "dimension " + text(d) + " is " + text(ne[d]) + ", expected 1.." + text(kMaxDimension - 1)};
    }
  }
  const DTypeInfo& type_info = info(type);
  if (ne[0] % type_info.block_elems != 0) {
    return Error{Code::invalid_argument, "row length " + text(ne[0]) + " is not a multiple of the " +
                                             std::string(type_info.name) + " block of " +
                                             std::to_string(type_info.block_elems)};
  }
  uint64_t elems = ne[0];
  uint64_t n_bytes = row_bytes(type, ne[0]);  // below 2^40 * 8
  for (size_t d = 1; d < ne.size(); ++d) {
    if (!multiply(elems, ne[d], elems) || !multiply(n_bytes, ne[d], n_bytes)) {
      return Error{Code::invalid_argument, "the size of shape " + to_string(ne) + " overflows 64 bits"};
    }
  }
  return n_bytes;
}

}  // namespace chimere::gguf
