// gguf.h  Reading GGUF model files: metadata, tensor table, mapped data.
//
// A file is hostile input: every count, length, offset and type is checked before use (docs/gguf.md lists the
// checks), and a refused file says what, where, expected, found. Version 2 and 3, little-endian; split sets
// (`name-00001-of-00003.gguf`) open as one. Tensor data is mapped, never copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "tensor/tensor_view.h"

namespace chimere::gguf {

// Ids as in the file.
enum class ValueType : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

// One metadata value. Integers of any width are held as 64 bits with their original type kept, because in the wild
// the same key is u32 in one file and i32 in another.
struct Value {
  ValueType type = ValueType::u32;  // element type when is_array
  bool is_array = false;
  std::variant<uint64_t, int64_t, double, bool, std::string, std::vector<uint64_t>, std::vector<int64_t>,
               std::vector<double>, std::vector<bool>, std::vector<std::string>>
      data;

  size_t array_size() const;  // 0 when not an array
  bool operator==(const Value&) const = default;
};

// Metadata of a file: keys to values, with readers that accept any integer or float width and check the range.
// Readers return not_found when the key is absent and invalid_argument when it has another type or range; the
// message names key, expected and found.
class Metadata {
 public:
  const Value* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  Result<int64_t> get_int(std::string_view key, int64_t min, int64_t max) const;
  Result<double> get_float(std::string_view key) const;  // finite; f32 or f64 (integers are accepted too)
  Result<bool> get_bool(std::string_view key) const;     // bool, or an integer 0 or 1
  Result<std::string_view> get_string(std::string_view key) const;
  // An array of any integer type, or of bool as 0 and 1.
  Result<std::vector<int64_t>> get_ints(std::string_view key, int64_t min, int64_t max) const;
  // A scalar that applies to all n entries, or an array of exactly n.
  Result<std::vector<int64_t>> get_int_per_layer(std::string_view key, size_t n, int64_t min, int64_t max) const;
  Result<std::span<const std::string>> get_strings(std::string_view key) const;
  Result<std::vector<float>> get_floats(std::string_view key) const;  // all finite in f32

  // The same with a default when the key is absent; a present but wrong value is still an error.
  Result<int64_t> get_int_or(std::string_view key, int64_t min, int64_t max, int64_t fallback) const;
  Result<double> get_float_or(std::string_view key, double fallback) const;
  Result<bool> get_bool_or(std::string_view key, bool fallback) const;

  // Replaces an existing value. REQUIRES of set_int: an integer type that holds the value.
  void set(std::string key, Value value);
  void set_int(std::string key, ValueType type, int64_t value);
  void set_float(std::string key, double value);  // f32
  void set_bool(std::string key, bool value);
  void set_string(std::string key, std::string value);

  // In file order.
  const std::vector<std::pair<std::string, Value>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<std::string, Value>> entries_;
  // Ordered, because a hostile file could choose keys that all fall into one bucket of a hash table.
  std::map<std::string, size_t, std::less<>> index_;
};

// An opened model file, or a split set of them. Move-only; tensors point into the mapping and live as long as it does.
// The files must not be changed while they are open (base/platform/mapped_file.h).
class File {
 public:
  // Opens and checks `path`; for a split set, `path` names the first shard.
  static Result<File> open(const std::string& path);
  // Parses bytes that are already in memory (tests, fuzzing). The caller keeps `bytes` alive, and aligned to 8 bytes
  // where tensor data is read through typed pointers. A shard of a split set is refused: a set opens by its path.
  static Result<File> parse(std::span<const std::byte> bytes, std::string label = "memory");

  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();

  const Metadata& metadata() const;
  std::span<const TensorView> tensors() const;
  const TensorView* find(std::string_view name) const;
  const std::string& path() const;
  uint32_t version() const;
  uint64_t size_bytes() const;  // all shards
  size_t n_shards() const;

  // Tells the system that these bytes were copied elsewhere, so that resident memory does not hold them twice.
  // The view stays valid: the pages are read again from the file when touched.
  void drop_pages(const TensorView& tensor) const;

 private:
  struct Impl;
  explicit File(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace chimere::gguf
