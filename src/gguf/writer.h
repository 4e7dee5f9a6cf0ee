// writer.h  Writing GGUF version 3 files.
//
// Collects metadata and tensors in order, then writes them in one pass: tensors back to back in that order, each padded
// to general.alignment (32 when the key is not set). What it writes, File::open accepts
// (within the memory limit of shard.h).
//
//   Writer writer;
//   writer.metadata().set_string("general.architecture", "qwen3");
//   TRY(writer.add_tensor("output_norm.weight", DType::F32, {64, 1, 1, 1}, bytes));
//   TRY(writer.write_file(path));
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "gguf/gguf.h"

namespace chimere::gguf {

class Writer {
 public:
  // Takes the next bytes of a tensor.
  using Sink = std::function<Status(std::span<const std::byte>)>;
  // Hands all bytes of a tensor to the sink, in chunks of any size. Called once for each write.
  using Source = std::function<Status(const Sink&)>;

  Metadata& metadata() { return metadata_; }

  // The name must be new, and `data` have the size of the shape. The caller keeps `data` alive until it is written.
  Status add_tensor(std::string name, DType type, const Shape& ne, std::span<const std::byte> data);
  Status add_tensor(std::string name, DType type, const Shape& ne, Source source);

  // What a file of these tensors and metadata takes.
  Result<uint64_t> file_bytes() const;

  // The file appears complete or not at all: it is written under another name and renamed.
  Status write_file(const std::string& path) const;
  Result<std::vector<std::byte>> write_memory() const;

  // Bytes done and in all, told while they are written; false stops with `cancelled`.
  using Progress = std::function<bool(uint64_t done, uint64_t total)>;
  // Changes with metadata, names, types, shapes, and with `sources`, which changes with the bytes that sources give.
  Result<uint64_t> identity(uint64_t sources) const;
  // As write_file, but a run that was stopped or killed leaves `path`.part, and the next one goes on behind the last
  // whole tensor of it (base/platform/resumable_file.h), if the identity is the same. A full disk is noticed at the start.
  Status write_file_in_runs(const std::string& path, uint64_t sources, const Progress& progress) const;

 private:
  struct Tensor {
    std::string name;
    DType type;
    Shape ne;
    uint64_t n_bytes;
    Source source;
  };

  // Everything before the tensor data, padded to the alignment.
  Result<std::vector<std::byte>> header(uint64_t alignment) const;
  Status write(const Sink& sink) const;
  // A tensor and its padding.
  Status write_tensor(const Tensor& tensor, uint64_t alignment, const Sink& sink) const;

  Metadata metadata_;
  std::vector<Tensor> tensors_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace chimere::gguf
