// ram_layers.h  Layers that do not fit on the card: their matrices are in pinned RAM, as the kernels want them, and the copy
// engine brings what an op needs to one of two places on the card while the ops before it are computed.
//
//   op of such a layer   0        1        2                3
//   place                A        B        A                B
//   copied               at once  at once  when 0 is done   when 1 is done
//
// Kernels find a matrix where they would have it anyhow, so that bits do not depend on where it was. A pass waits for
// the bus when its layers in RAM take longer to come than everything takes to be computed: a decode step does, a long
// slice of a prompt hardly. States and KV pages of these layers are on the card, like those of all others.
//
// The table of tokens goes to RAM before any layer does and stays there: a kernel reads the rows of a pass over the bus.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/event.h"
#include "backend/cuda/weights/pack.h"
#include "base/result.h"

namespace chimere::cuda {

// Layers of the trunk that can be in RAM. 0: the program has no such, or none whose ops are known.
int n_layers(const Program& program);

// What is in RAM where so many layers are, from shapes alone. They are spread over the model, so that what is computed
// between them hides their way.
class RamLayers {
 public:
  struct Piece {
    MatrixId id;
    uint64_t offset;  // inside what its op needs
  };
  struct RamOp {
    size_t index;  // of the op in the program
    std::vector<Piece> pieces;
    uint64_t bytes;
  };

  RamLayers() = default;
  RamLayers(const Program& program, int n_in_ram, bool with_table, PackForm form);

  const std::vector<RamOp>& ops() const { return ops_; }
  MatrixId table() const { return table_; }  // or kNone
  bool has(MatrixId id) const { return !places_.empty() && places_[static_cast<size_t>(id)] != kElsewhere; }
  // Of a matrix of these ops: its offset among the two places on the card.
  uint64_t card_offset(MatrixId id) const { return places_[static_cast<size_t>(id)]; }
  uint64_t ram_bytes() const { return ram_bytes_; }
  uint64_t card_bytes() const { return place_bytes_[0] + place_bytes_[1]; }
  uint64_t place_offset(size_t op) const { return op % 2 == 0 ? 0 : place_bytes_[0]; }

 private:
  static constexpr uint64_t kElsewhere = UINT64_MAX;

  std::vector<RamOp> ops_;
  MatrixId table_ = kNone;
  std::vector<uint64_t> places_;  // by MatrixId; empty: nothing is in RAM
  uint64_t ram_bytes_ = 0, place_bytes_[2] = {0, 0};
};

// The memory, and what moves in it.
class LayerBringer {
 public:
  // Packs the matrices into pinned memory. Of the options, n_threads, progress and matrix_taken matter. `layers` outlives it.
  static Result<std::unique_ptr<LayerBringer>> create(const Program& program, const RamLayers& layers, PackForm form,
                                                      Ledger& ledger, const LoadOptions& options);
  ~LayerBringer();

  std::byte* places() const { return places_.data(); }
  const std::byte* table() const { return table_.data(); }
  bool has_ops() const { return !layers_.ops().empty(); }

  // Before the first op of a pass is given to the stream: begins to bring what its first two need.
  Status begin(const Stream& stream);
  // Whether the op is one whose matrices are brought. REQUIRES: asked in the order of the program.
  bool is_next(size_t op) const { return next_ < layers_.ops().size() && layers_.ops()[next_].index == op; }
  // Makes the stream wait for what the next such op needs.
  Status await(const Stream& stream);
  // Its kernels have been given to the stream: the one after the next may come to its place.
  Status done_with(const Stream& stream);

 private:
  struct Place {
    Event brought, used;
  };

  LayerBringer(const RamLayers& layers, Stream copies, Event begun, Place a, Place b)
      : layers_(layers), copies_(std::move(copies)), begun_(std::move(begun)), events_{std::move(a), std::move(b)} {}
  Status bring(size_t op);

  const RamLayers& layers_;
  Stream copies_;
  Event begun_;
  Place events_[2];
  DeviceBuffer<std::byte> places_;
  std::vector<PinnedBuffer<std::byte>> ram_;  // by op
  PinnedBuffer<std::byte> table_;
  size_t next_ = 0;
};

}  // namespace chimere::cuda
