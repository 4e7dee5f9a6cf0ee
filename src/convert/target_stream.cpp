#include "convert/target_stream.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "gguf/value.h"
#include "tensor/quant_blocks.h"
#include "tensor/quantize.h"

namespace chimere::convert {
namespace {

constexpr size_t kBufferBytes = size_t{4} << 20;
constexpr size_t kKeptBytes = size_t{64} << 20;  // of source pages, before they are given back
constexpr uint64_t kMxfp4Elems = 32, kMxfp4CodeBytes = 16;

Error wrong(const Target& target, const std::string& what) {
  const std::string source = target.sources.empty() ? "" : " (from " + gguf::quoted(target.sources.front()->name) + ")";
  return Error{Code::corrupt, "tensor " + gguf::quoted(target.name) + source + ": " + what};
}

uint64_t n_rows(const Target& target) { return target.ne[1] * target.ne[2] * target.ne[3]; }

// Rows of the kind the target has, in one source.
uint64_t source_rows(const Target& target) {
  const uint64_t elems = target.sources.front()->elems();
  return target.storage == Storage::mxfp4 ? elems / (target.ne[0] / kMxfp4Elems * kMxfp4CodeBytes)
                                          : elems / target.ne[0];
}

// Collects encoded rows, so that files are written in large pieces.
class Buffer {
 public:
  explicit Buffer(const gguf::Writer::Sink& sink) : sink_(sink) { bytes_.reserve(kBufferBytes); }
  std::byte* grow(size_t n) {
    bytes_.resize(bytes_.size() + n);
    return bytes_.data() + bytes_.size() - n;
  }
  bool full() const { return bytes_.size() >= kBufferBytes; }
  Status flush() {
    if (bytes_.empty()) return Ok{};
    TRY(sink_(bytes_));
    bytes_.clear();
    return Ok{};
  }

 private:
  const gguf::Writer::Sink& sink_;
  std::vector<std::byte> bytes_;
};

// The checkpoint pairs neighbours in a byte, low half first; a block of the file pairs element i with i + 16.
void repack_mxfp4(const std::byte* codes, std::byte scale, std::byte* out) {
  const auto code = [&](int i) { return static_cast<uint8_t>(codes[i / 2]) >> (i % 2 * 4) & 15; };
  BlockMXFP4 block;
  block.e = static_cast<uint8_t>(scale);
  for (int i = 0; i < 16; ++i) block.q[i] = static_cast<uint8_t>(code(i) | code(i + 16) << 4);
  std::memcpy(out, &block, sizeof(block));
}

Status stream_mxfp4(const Target& target, Buffer& buffer) {
  const uint64_t blocks = target.ne[0] / kMxfp4Elems;
  for (uint64_t r = 0; r < n_rows(target); ++r) {
    const uint64_t first = (target.rows ? target.rows(r) : r) * blocks;
    std::byte* out = buffer.grow(blocks * sizeof(BlockMXFP4));
    for (uint64_t b = 0; b < blocks; ++b, out += sizeof(BlockMXFP4)) {
      repack_mxfp4(target.sources.front()->bytes.data() + (first + b) * kMxfp4CodeBytes,
                   target.scales->bytes[first + b], out);
    }
    if (buffer.full()) TRY(buffer.flush());
  }
  return Ok{};
}

class RowReader {
 public:
  RowReader(const Checkpoint& checkpoint, const Target& target)
      : checkpoint_(checkpoint), target_(target), per_source_(source_rows(target)), raw_(target.ne[0]) {}

  Status read(uint64_t row, std::span<float> out) {
    const uint64_t from = target_.rows ? target_.rows(row) : row;
    const StoredTensor& source = *target_.sources[from / per_source_];
    const uint64_t n = out.size(), in = from % per_source_, columns = target_.transposed_columns;
    const uint64_t first = columns ? in / columns * columns * n + in % columns : in * n;
    float* values = target_.columns ? raw_.data() : out.data();
    TRY(checkpoint_.read(source, first, columns ? columns : 1, n, values));
    if (target_.columns) {
      for (uint64_t i = 0; i < n; ++i) out[i] = raw_[target_.columns(i)];
    }
    if (target_.edit) target_.edit(row, out);
    return Ok{};
  }

 private:
  const Checkpoint& checkpoint_;
  const Target& target_;
  uint64_t per_source_;
  std::vector<float> raw_;
};

Status check_values(const Target& target, DType type, uint64_t row, std::span<const float> values) {
  const float limit = type == DType::F16 ? 65520.0f : INFINITY;  // from here on a half rounds to infinity
  for (const float v : values) {
    if (std::fabs(v) < limit) continue;
    const bool finite = std::isfinite(v);
    return wrong(target, "row " + std::to_string(row) +
                             (finite ? " holds " + std::to_string(v) + ", too large for F16: use bf16, f32 or q8_0"
                                     : " holds a value that is not finite: the file is damaged"));
  }
  return Ok{};
}

void drop_sources(const Checkpoint& checkpoint, const Target& target) {
  for (const StoredTensor* source : target.sources) checkpoint.drop_pages(*source);
}

}  // namespace

DType stored_type(const Target& target, DType wanted) {
  if (target.storage == Storage::mxfp4) return DType::MXFP4;
  if (target.storage == Storage::f32) return DType::F32;
  return target.ne[0] % static_cast<uint64_t>(info(wanted).block_elems) == 0 ? wanted : DType::F16;
}

Status check_target(const Target& target) {
  if (target.sources.empty()) return Ok{};
  if (target.ne[0] == 0 || target.sources.front()->elems() == 0) return wrong(target, "it is empty");
  const StoredTensor& source = *target.sources.front();
  const bool is_mxfp4 = target.storage == Storage::mxfp4;
  if (is_mxfp4) {
    const bool fits = target.ne[0] % kMxfp4Elems == 0 && source.type == StoredType::u8 && target.scales &&
                      target.scales->type == StoredType::u8 &&
                      target.scales->elems() * kMxfp4CodeBytes == source.elems();
    if (!fits) return wrong(target, "expected MXFP4 blocks of 16 bytes and a scale for each");
  }
  const uint64_t row_elems = is_mxfp4 ? target.ne[0] / kMxfp4Elems * kMxfp4CodeBytes : target.ne[0];
  const uint64_t whole = target.transposed_columns ? row_elems * target.transposed_columns : row_elems;
  if (source.elems() % whole != 0) {
    return wrong(target, "expected rows of " + std::to_string(target.ne[0]) + " values, found shape " +
                             shape_text(source.shape));
  }
  const uint64_t available = source_rows(target) * target.sources.size();
  bool fits = target.rows || n_rows(target) == available;
  for (uint64_t r = 0; fits && target.rows && r < n_rows(target); ++r) fits = target.rows(r) < available;
  for (uint64_t c = 0; fits && target.columns && c < target.ne[0]; ++c) fits = target.columns(c) < target.ne[0];
  if (!fits) {
    return wrong(target, "shape " + to_string(target.ne) + " cannot be made of " +
                             std::to_string(target.sources.size()) + " of shape " + shape_text(source.shape));
  }
  return Ok{};
}

Status stream_target(const Checkpoint& checkpoint, const Target& target, DType type, const gguf::Writer::Sink& sink) {
  if (target.sources.empty()) return sink(std::as_bytes(std::span(target.values)));
  Buffer buffer(sink);
  if (target.storage == Storage::mxfp4) {
    TRY(stream_mxfp4(target, buffer));
  } else {
    CHECK(can_quantize(type));
    RowReader reader(checkpoint, target);
    std::vector<float> row(target.ne[0]);
    const uint64_t bytes = row_bytes(type, target.ne[0]);
    uint64_t kept = 0;
    for (uint64_t r = 0; r < n_rows(target); ++r) {
      TRY(reader.read(r, row));
      TRY(check_values(target, type, r, row));
      quantize_row(type, row.data(), buffer.grow(bytes), static_cast<int64_t>(row.size()));
      if (buffer.full()) TRY(buffer.flush());
      if ((kept += row.size() * sizeof(float)) > kKeptBytes) {
        drop_sources(checkpoint, target);
        kept = 0;
      }
    }
  }
  TRY(buffer.flush());
  drop_sources(checkpoint, target);
  return Ok{};
}

}  // namespace chimere::convert
