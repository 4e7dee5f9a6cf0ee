// raw_file_for_test.h  Builds the bytes of a GGUF file field by field, valid or not, and remembers where the fields
// are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "gguf/gguf.h"

namespace chimere::gguf {

class RawFile {
 public:
  struct Field {
    size_t position;
    size_t bytes;  // 4 or 8: counts, lengths, types, dimensions, offsets
  };

  RawFile(uint64_t n_tensors, uint64_t n_keys, uint32_t version = 3) {
    for (const char c : {'G', 'G', 'U', 'F'}) put(c);
    put(version).put(n_tensors).put(n_keys);
  }

  template <class T>
  RawFile& put(T value) {
    if (sizeof(T) >= 4) fields_.push_back({bytes_.size(), sizeof(T)});
    std::array<std::byte, sizeof(T)> raw;
    std::memcpy(raw.data(), &value, sizeof(T));
    for (const std::byte byte : raw) bytes_.push_back(byte);
    return *this;
  }

  RawFile& text(std::string_view value) {
    put<uint64_t>(value.size());
    for (const char c : value) put(c);
    return *this;
  }

  RawFile& key(std::string_view name, uint32_t type) { return text(name).put(type); }
  RawFile& key(std::string_view name, ValueType type) { return key(name, static_cast<uint32_t>(type)); }
  RawFile& u32(std::string_view name, uint32_t value) { return key(name, ValueType::u32).put(value); }

  RawFile& array(std::string_view name, ValueType type, uint64_t count) {
    return key(name, ValueType::array).put(static_cast<uint32_t>(type)).put(count);
  }

  RawFile& tensor(std::string_view name, const std::vector<uint64_t>& ne, uint32_t type, uint64_t offset) {
    text(name).put(static_cast<uint32_t>(ne.size()));
    for (const uint64_t n : ne) put(n);
    return put(type).put(offset);
  }

  // Pads to the data section and appends `bytes` of data.
  RawFile& data(size_t bytes, size_t alignment = 32) {
    header_bytes_ = bytes_.size();
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    for (size_t i = 0; i < bytes; ++i) bytes_.push_back(static_cast<std::byte>(i * 7));
    return *this;
  }

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::vector<Field>& fields() const { return fields_; }
  size_t header_bytes() const { return header_bytes_ ? header_bytes_ : bytes_.size(); }

  // "" when the file is accepted, else the message.
  std::string refusal() const {
    const auto file = File::parse(bytes_, "f.gguf");
    return file ? std::string() : file.error().message;
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<Field> fields_;
  size_t header_bytes_ = 0;
};

}  // namespace chimere::gguf
