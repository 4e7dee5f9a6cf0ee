// checkpoint.h  A Hugging Face checkpoint: the tensors of all its safetensors files, mapped, and their values as
// floats.
//
// FP8 weights come with scales in a tensor of their own: one number, one for each row, or one for each block of
// `quantization_config.weight_block_size` (128 x 128). They are applied while reading.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/platform/mapped_file.h"
#include "base/result.h"
#include "convert/hf_config.h"
#include "convert/safetensors.h"

namespace chimere::convert {

class Checkpoint {
 public:
  // Reads model.safetensors.index.json and the files it names, or model.safetensors alone.
  static Result<Checkpoint> open(const std::string& folder, const HfConfig& config);

  // By its name or by an alias of it (safetensors.h).
  const StoredTensor* find(std::string_view name) const;
  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  // The scales that belong to an FP8 tensor, or nullptr.
  const StoredTensor* scales_of(const StoredTensor& tensor) const;

  // `n` values from element `first` on, `stride` elements apart. REQUIRES: in range.
  Status read(const StoredTensor& tensor, uint64_t first, uint64_t stride, uint64_t n, float* out) const;

  // The tensor was read; its pages need not stay in memory.
  void drop_pages(const StoredTensor& tensor) const;

  // Changes with any change of the files that size, time, header or sampled pages show.
  uint64_t identity() const { return identity_; }

 private:
  struct Shard {
    std::string path;
    MappedFile file;
  };
  Status add_shard(const std::string& folder, const std::string& name);
  Status apply_scales(const StoredTensor& tensor, uint64_t first, uint64_t stride, uint64_t n, float* out) const;

  std::vector<Shard> shards_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> aliases_;
  std::array<uint64_t, 2> scale_block_ = {128, 128};
  uint64_t identity_ = 0;
};

}  // namespace chimere::convert
