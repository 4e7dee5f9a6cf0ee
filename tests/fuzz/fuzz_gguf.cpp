// fuzz_gguf.cpp  libFuzzer target of the GGUF reader: any bytes are refused with a message or keep every promise.
//
// An accepted file is read to the last byte of each tensor, summarised, and written again; reading back what was
// written must give the same file, byte for byte, when it is written once more.
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "gguf/gguf.h"
#include "gguf/summary.h"
#include "gguf/writer.h"

namespace {

using namespace chimere;

std::vector<std::byte> rewrite(const gguf::File& file) {
  gguf::Writer writer;
  writer.metadata() = file.metadata();
  for (const TensorView& tensor : file.tensors()) {
    CHECK(writer.add_tensor(std::string(tensor.name), tensor.type, tensor.ne, {tensor.data, tensor.size_bytes()}));
  }
  auto bytes = writer.write_memory();
  CHECK(bool(bytes));
  return std::move(*bytes);
}

void exercise(const gguf::File& file, std::span<const std::byte> bytes) {
  unsigned sum = 0;
  for (const TensorView& tensor : file.tensors()) {
    CHECK(file.find(tensor.name) == &tensor);
    const auto offset = static_cast<size_t>(tensor.data - bytes.data());
    CHECK(offset <= bytes.size() && tensor.size_bytes() <= bytes.size() - offset);
    for (uint64_t i = 0; i < tensor.size_bytes(); ++i) sum += static_cast<unsigned>(tensor.data[i]);
  }
  volatile unsigned keep = sum;
  (void)keep;
  const gguf::Summary summary = summarize(file);
  CHECK(summary.n_tensors == file.tensors().size());
  CHECK(summary.tensor_bytes <= bytes.size());
  for (const auto& [key, value] : file.metadata().entries()) {
    // Whatever their answer, the readers must cope with every value.
    (void)file.metadata().get_int(key, -1, 1000);
    (void)file.metadata().get_float(key);
    (void)file.metadata().get_bool(key);
    (void)file.metadata().get_string(key);
    (void)file.metadata().get_floats(key);
    (void)file.metadata().get_strings(key);
    (void)file.metadata().get_int_per_layer(key, 4, INT64_MIN, INT64_MAX);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto file = gguf::File::parse(bytes);
  if (!file) {
    CHECK(!file.error().message.empty());
    return 0;
  }
  exercise(*file, bytes);
  const std::vector<std::byte> first = rewrite(*file);
  auto again = gguf::File::parse(first);
  CHECK(bool(again));
  CHECK(rewrite(*again) == first);
  return 0;
}
