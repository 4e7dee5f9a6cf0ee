// convert.h  A Hugging Face checkpoint to a GGUF file.
//
//   folder -> HfConfig, Checkpoint -> Recipe (families.h) -> checked against the model's own loader -> gguf::Writer
//
// Nothing is written before the whole recipe is known to be complete: every tensor found, every shape what the
// architecture binds. Weights are read and written row by row.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace chimere::convert {

struct ConvertOptions {
  std::string folder;
  std::string out;
  // Of matrices: F32, F16, BF16 or Q8_0. Nothing: the smallest float type that holds what the checkpoint has.
  std::optional<DType> type = DType::BF16;
  std::string name;  // general.name; the folder's when empty
  // The file is OUT-0123456789abcdef.gguf, its number that of all it is made of, and one that is there is taken as it is.
  bool named_by_content = false;
};

struct ConvertReport {
  std::string file;  // that was written, or was there
  std::string architecture;
  uint64_t n_tensors = 0;
  uint64_t n_bytes = 0;
  std::vector<std::string> notes;     // what the file does not say although the checkpoint did
  std::vector<std::string> left_out;  // tensors of the checkpoint that have no place in it
};

// `progress` hears bytes done and in all, and may stop the run by false; a stopped or killed run is continued by the
// next one with the same options.
Result<ConvertReport> convert(const ConvertOptions& options, const std::function<bool(uint64_t, uint64_t)>& progress);

}  // namespace chimere::convert
