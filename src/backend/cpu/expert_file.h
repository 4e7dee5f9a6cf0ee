// expert_file.h  The packed experts of one MoE layer in a file of their own, one expert behind the other.
//
// A GGUF file has the gates of all experts, then all up-projections, then all down-projections, in blocks that have to
// be packed before they can be multiplied with. Here the three panels of an expert are one piece that is ready for use:
// one read, straight to where the kernels read it. Made once for each layer, from the model's file.
//
//   page 0     "CHIMEXP1", then u64: identity, bytes of an expert, number of experts, hash of the 32 bytes before
//   page 1 ..  experts, each a whole number of pages: panels of gate, up and down, each from a multiple of 64 bytes on
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/packed_matrix.h"
#include "base/platform/direct_file.h"
#include "base/result.h"

namespace chimere::cpu {

// How one expert of a MoE layer lies in memory and in its file.
struct ExpertLayout {
  struct Part {
    MatrixId id;
    PackedMatrix matrix;  // without its bytes
    uint64_t offset;      // in the expert
  };
  std::vector<Part> parts;  // gate where there is one, up, down
  int n_experts = 0;
  uint64_t bytes = 0;  // of one expert: whole pages

  static Result<ExpertLayout> create(const Program& program, const op::MoeFfn& mixture);

  uint64_t file_bytes() const { return offset_of(n_experts); }
  uint64_t offset_of(int expert) const { return DirectFile::kPage + static_cast<uint64_t>(expert) * bytes; }
};

struct ExpertFileOptions {
  std::string folder;  // is made where it is not there yet
  // Of the weights, so that the next start finds the file; 0: they have no name, and the file goes away with us.
  uint64_t fingerprint = 0;
};

// Opens the layer's file, or packs the experts and writes it first; a killed writer leaves nothing behind that would be
// taken for it. `packed` is called behind each expert that was.
Result<DirectFile> open_expert_file(const Program& program, const ExpertLayout& layout,
                                    const ExpertFileOptions& options, const ParallelFor& parallel,
                                    const std::function<void()>& packed);

}  // namespace chimere::cpu
