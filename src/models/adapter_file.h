// adapter_file.h  LoRA adapters in GGUF: `general.type` adapter, `adapter.type` lora.
//
// A change of matrix NAME is two tensors, NAME.lora_a {in, rank} and NAME.lora_b {rank, out}, scaled by alpha / rank
// (`adapter.lora.alpha`; 0 or absent: 1). A file of another architecture, a shape that does not fit, or a matrix that
// cannot be changed is refused by name: an adapter is applied whole or not at all.
#pragma once

#include <memory>
#include <string>

#include "backend/adapter.h"
#include "base/result.h"
#include "gguf/gguf.h"

namespace chimere::models {

class Model;

// Not yet held by an executable.
Result<std::shared_ptr<Adapter>> read_adapter(const gguf::File& file, std::string name, const Program& program,
                                              const std::string& architecture);

// Opens, reads and closes, and brings it to the model's backend. Refused where that has no adapters, or no room.
Result<std::shared_ptr<const Adapter>> load_adapter(const std::string& path, std::string name, Model& model);

}  // namespace chimere::models
