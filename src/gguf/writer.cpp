#include "gguf/writer.h"

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "base/platform/atomic_file.h"
#include "base/platform/resumable_file.h"
#include "gguf/shard.h"
#include "gguf/value.h"

namespace chimere::gguf {
namespace {

constexpr uint32_t kVersion = 3;
// Between two records of what is safely on disk: a killed run repeats at most a second's work.
constexpr uint64_t kCheckpointBytes = uint64_t{256} << 20;

Error invalid(const std::string& message) { return Error{Code::invalid_argument, message}; }

uint64_t padded(uint64_t bytes, uint64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

using Bytes = std::vector<std::byte>;

template <class T>
void put(Bytes& out, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(T));
}

void put_string(Bytes& out, std::string_view text) {
  put<uint64_t>(out, text.size());
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  out.insert(out.end(), bytes, bytes + text.size());
}

// The low bytes of a value that was checked to fit its type.
void put_integer(Bytes& out, ValueType type, uint64_t value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + min_element_bytes(type));
}

// One overload for each kind of element; the error has no place in it yet.
Status put_element(Bytes& out, ValueType type, uint64_t value) {
  if (!is_unsigned_int(type) || !fits(type, value))
    return invalid(std::to_string(value) + " is not a value of the type");
  put_integer(out, type, value);
  return Ok{};
}

Status put_element(Bytes& out, ValueType type, int64_t value) {
  if (!is_signed_int(type) || !fits(type, value)) return invalid(std::to_string(value) + " is not a value of the type");
  put_integer(out, type, static_cast<uint64_t>(value));
  return Ok{};
}

Status put_element(Bytes& out, ValueType type, double value) {
  if (!is_float(type)) return invalid("a float is not a value of the type");
  if (type == ValueType::f32) {
    put(out, static_cast<float>(value));
  } else {
    put(out, value);
  }
  return Ok{};
}

Status put_element(Bytes& out, ValueType type, bool value) {
  if (type != ValueType::boolean) return invalid("a bool is not a value of the type");
  put<uint8_t>(out, value ? 1 : 0);
  return Ok{};
}

Status put_element(Bytes& out, ValueType type, const std::string& value) {
  if (type != ValueType::string) return invalid("a string is not a value of the type");
  if (value.size() > kMaxStringBytes) {
    return invalid("a string of " + std::to_string(value.size()) + " bytes exceeds the limit of " +
                   std::to_string(kMaxStringBytes));
  }
  put_string(out, value);
  return Ok{};
}

struct ValueWriter {
  Bytes& out;
  const Value& value;

  template <class T>
  Status operator()(const T& scalar) const {
    if (value.is_array) return invalid("marked as an array, but holds a single value");
    put(out, static_cast<uint32_t>(value.type));
    return put_element(out, value.type, scalar);
  }

  template <class T>
  Status operator()(const std::vector<T>& elements) const {
    if (!value.is_array) return invalid("holds an array, but is not marked as one");
    if (elements.size() > kMaxArrayElements) return invalid("too many array elements");
    put(out, static_cast<uint32_t>(ValueType::array));
    put(out, static_cast<uint32_t>(value.type));
    put<uint64_t>(out, elements.size());
    for (size_t i = 0; i < elements.size(); ++i) TRY(put_element(out, value.type, elements[i]));
    return Ok{};
  }
};

Status check_name(const char* what, std::string_view name) {
  if (name.empty()) return invalid(std::string(what) + " without a name");
  if (name.size() > kMaxNameBytes || name.find('\0') != std::string_view::npos) {
    return invalid(std::string(what) + " " + quoted(name) + ": longer than " + std::to_string(kMaxNameBytes) +
                   " bytes or with a NUL byte");
  }
  return Ok{};
}

Status pad(const Writer::Sink& sink, uint64_t bytes) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  while (bytes > 0) {
    const uint64_t chunk = std::min<uint64_t>(bytes, kZeros.size());
    TRY(sink(std::span(kZeros).first(chunk)));
    bytes -= chunk;
  }
  return Ok{};
}

}  // namespace

Status Writer::add_tensor(std::string name, DType type, const Shape& ne, std::span<const std::byte> data) {
  auto expected = checked_tensor_bytes(type, ne);
  if (expected && data.size() != *expected) {
    return invalid("tensor " + quoted(name) + ": " + std::string(chimere::name(type)) + " " + to_string(ne) +
                   " takes " + std::to_string(*expected) + " bytes, found " + std::to_string(data.size()));
  }
  return add_tensor(std::move(name), type, ne, [data](const Sink& sink) { return sink(data); });
}

Status Writer::add_tensor(std::string name, DType type, const Shape& ne, Source source) {
  TRY(check_name("tensor", name));
  auto n_bytes = checked_tensor_bytes(type, ne);
  if (!n_bytes) return invalid("tensor " + quoted(name) + ": " + n_bytes.error().message);
  if (!names_.insert(name).second) return invalid("tensor " + quoted(name) + " was added before");
  tensors_.push_back({std::move(name), type, ne, *n_bytes, std::move(source)});
  return Ok{};
}

Result<Bytes> Writer::header(uint64_t alignment) const {
  Bytes out;
  for (const char c : {'G', 'G', 'U', 'F'}) put(out, c);
  put(out, kVersion);
  put<uint64_t>(out, tensors_.size());
  put<uint64_t>(out, metadata_.entries().size());
  for (const auto& [key, value] : metadata_.entries()) {
    TRY(check_name("key", key));
    put_string(out, key);
    if (auto status = std::visit(ValueWriter{out, value}, value.data); !status) {
      return invalid("key " + quoted(key) + " (" + describe(value) + "): " + status.error().message);
    }
  }
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    put_string(out, tensor.name);
    uint32_t n_dims = static_cast<uint32_t>(tensor.ne.size());
    while (n_dims > 1 && tensor.ne[n_dims - 1] == 1) --n_dims;
    put(out, n_dims);
    for (uint32_t d = 0; d < n_dims; ++d) put(out, tensor.ne[d]);
    put(out, static_cast<uint32_t>(tensor.type));
    put(out, offset);
    const uint64_t next = offset + tensor.n_bytes + alignment;
    if (next < offset || next < tensor.n_bytes) return invalid("the tensors exceed 64-bit offsets");
    offset = padded(offset + tensor.n_bytes, alignment);
  }
  // Without tensors there is no data section to align.
  if (!tensors_.empty()) out.resize(padded(out.size(), alignment));
  return Result<Bytes>{std::move(out)};
}

Status Writer::write_tensor(const Tensor& tensor, uint64_t alignment, const Sink& sink) const {
  uint64_t written = 0;
  const auto size_error = [&] {
    return invalid("tensor " + quoted(tensor.name) + ": its source gave " + std::to_string(written) +
                   " bytes, expected " + std::to_string(tensor.n_bytes));
  };
  TRY(tensor.source([&](std::span<const std::byte> chunk) -> Status {
    written += chunk.size();
    if (written > tensor.n_bytes) return size_error();
    return sink(chunk);
  }));
  if (written != tensor.n_bytes) return size_error();
  return pad(sink, padded(written, alignment) - written);
}

Status Writer::write(const Sink& sink) const {
  TRY_ASSIGN(const uint64_t alignment, alignment_of(metadata_));
  TRY_ASSIGN(const Bytes start, header(alignment));
  TRY(sink(start));
  for (const Tensor& tensor : tensors_) TRY(write_tensor(tensor, alignment, sink));
  return Ok{};
}

Result<uint64_t> Writer::file_bytes() const {
  TRY_ASSIGN(const uint64_t alignment, alignment_of(metadata_));
  TRY_ASSIGN(const Bytes start, header(alignment));
  uint64_t total = start.size();
  for (const Tensor& tensor : tensors_) total += padded(tensor.n_bytes, alignment);
  return total;
}

Status Writer::write_file(const std::string& path) const {
  TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
  TRY(write([&](std::span<const std::byte> chunk) { return file.write(chunk); }));
  return file.commit();
}

Result<uint64_t> Writer::identity(uint64_t sources) const {
  TRY_ASSIGN(const uint64_t alignment, alignment_of(metadata_));
  TRY_ASSIGN(const Bytes start, header(alignment));
  return hash64(start, sources);
}

Status Writer::write_file_in_runs(const std::string& path, uint64_t sources, const Progress& progress) const {
  TRY_ASSIGN(const uint64_t alignment, alignment_of(metadata_));
  TRY_ASSIGN(const Bytes start, header(alignment));
  TRY_ASSIGN(const uint64_t total, file_bytes());
  TRY_ASSIGN(ResumableFile file, ResumableFile::open(path, hash64(start, sources)));
  uint64_t end = start.size();  // of the last part that is whole
  size_t next = 0;              // the first tensor that is not
  if (file.size() < end) {
    TRY(file.cut(0));
    TRY(file.write(start));
  } else {
    while (next < tensors_.size() && end + padded(tensors_[next].n_bytes, alignment) <= file.size()) {
      end += padded(tensors_[next++].n_bytes, alignment);
    }
    TRY(file.cut(end));
  }
  TRY(file.check_room(total));
  uint64_t noted = end;
  for (; next < tensors_.size(); ++next) {
    const Status written = write_tensor(tensors_[next], alignment, [&](std::span<const std::byte> chunk) -> Status {
      TRY(file.write(chunk));
      if (progress(file.size(), total)) return Ok{};
      return Error{Code::cancelled, path + ": stopped at byte " + std::to_string(file.size()) + " of " +
                                        std::to_string(total) + "; the same command goes on from there"};
    });
    if (!written) {
      // Where this fails, too, the next run has more to repeat; the first failure is the one to tell.
      if (file.cut(end)) (void)file.checkpoint();
      return written;
    }
    end = file.size();
    if (end - noted < kCheckpointBytes) continue;
    TRY(file.checkpoint());
    noted = end;
  }
  return file.commit();
}

Result<Bytes> Writer::write_memory() const {
  Bytes out;
  TRY(write([&](std::span<const std::byte> chunk) -> Status {
    out.insert(out.end(), chunk.begin(), chunk.end());
    return Ok{};
  }));
  return Result<Bytes>{std::move(out)};
}

}  // namespace chimere::gguf
