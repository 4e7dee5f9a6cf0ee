// program_binding.h  The constants of a program on the device: matrices in the kernels' format, vectors, frequencies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/ram_layers.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/ledger.h"
#include "backend/cuda/weights/pack.h"
#include "backend/cuda/weights/weight.h"
#include "base/result.h"

namespace chimere::cuda {

class MappedExperts;

// What is in RAM: the routed experts of the first n_hosted MoE layers, and other matrices.
struct HostedLayers {
  int n_hosted = 0;
  bool card_reads = false;  // them, with n_slots of each layer on the card; else they are computed elsewhere
  int n_slots = 0;
  int n_brought = 0;          // layers whose other matrices come to the card for every pass (ram_layers.h)
  bool table_in_ram = false;  // that of tokens
};

class ProgramBinding {
 public:
  // Lays everything out at a made-up base address: enough to measure working memory with. Matrices that are computed
  // elsewhere have a shape and no data.
  explicit ProgramBinding(const Program& program, const HostedLayers& hosted = {}, PackForm form = PackForm::compact);
  ~ProgramBinding();

  // Allocates the memory and fills it.
  Status upload(const Program& program, Ledger& ledger, const LoadOptions& options);

  const Weight& weight(MatrixId id) const { return weights_[id]; }
  // An empty one for kNone.
  Weight weight_or_none(MatrixId id) const { return id == kNone ? Weight{} : weights_[id]; }
  // As prompts read it: experts without a slot where MappedExperts::bring() puts them.
  Weight prompt_weight(MatrixId id) const;
  // The index of the layer among those that the card reads from RAM, or kNone.
  int mapped_layer(const op::MoeFfn& mixture) const { return layers_.card_reads ? hosted_[mixture.up] : kNone; }
  // The index of the layer among those computed elsewhere, or kNone.
  int hosted(const op::MoeFfn& mixture) const { return layers_.card_reads ? kNone : hosted_[mixture.up]; }
  bool is_in_ram(MatrixId id) const { return is_expert_in_ram(id) || ram_layers_.has(id); }
  // In RAM, and computed there.
  bool is_computed_there(MatrixId id) const { return is_expert_in_ram(id) && !layers_.card_reads; }
  bool is_brought(MatrixId id) const { return ram_layers_.has(id) && id != ram_layers_.table(); }
  // Where decode passes count the uses of its experts, or null.
  uint32_t* uses(const op::MoeFfn& mixture) const;
  const float* vector(VectorId id) const { return id == kNone ? nullptr : vectors_[id]; }
  const float* frequencies(RopeId id) const { return id == kNone ? nullptr : frequencies_[id]; }

  // On the card.
  uint64_t size_bytes() const { return bytes_ + mapped_bytes_ + ram_layers_.card_bytes(); }
  uint64_t taken_bytes() const {  // as the ledger counts
    return Ledger::taken_bytes(bytes_) + mapped_taken_ + Ledger::taken_bytes(ram_layers_.card_bytes());
  }
  uint64_t slot_bytes() const { return slot_bytes_; }
  uint64_t mapped_bytes() const { return mapped_bytes_; }  // of size_bytes(), what experts in RAM take
  MappedExperts* mapped() const { return mapped_.get(); }
  const RamLayers& ram_layers() const { return ram_layers_; }
  LayerBringer* bringer() const { return bringer_.get(); }  // null: no layers are in RAM
  PackForm form() const { return form_; }

 private:
  void place(const Program& program, std::byte* base);
  bool is_expert_in_ram(MatrixId id) const { return hosted_[id] != kNone; }

  const HostedLayers layers_;
  PackForm form_;
  uint64_t bytes_ = 0, mapped_bytes_ = 0, mapped_taken_ = 0, slot_bytes_ = 0;
  std::vector<int> hosted_;  // by MatrixId
  std::byte* grids_ = nullptr;
  std::vector<Weight> weights_;
  std::vector<const float*> vectors_, frequencies_;
  DeviceBuffer<std::byte> memory_;
  std::vector<const op::MoeFfn*> mixtures_;  // those of layers_
  std::unique_ptr<MappedExperts> mapped_;
  const RamLayers ram_layers_;
  std::unique_ptr<LayerBringer> bringer_;
};

}  // namespace chimere::cuda
