// hybrid.h  Two random models for the numbers contract, with weights in several quantised types.
//
// One has all that a qwen35moe has: Gated DeltaNet and gated attention layers, each followed by experts with a shared
// one. The other has what its relatives have: Mamba-2 and Mamba-1, attention over a window with sinks, latent experts
// behind a sigmoid router.
#pragma once

#include "backend_under_test.h"
#include "program.h"

namespace chimere::parity {

class Hybrid {
 public:
  enum class Kind { delta_net, mamba };
  static constexpr int kVocab = 97;

  // Made once for every test of a program.
  static const Hybrid& of(Kind kind);

  // On the backend under test, in fast mode.
  ExecutablePtr compile(int n_threads, const KvFormat& kv = {}) const;

 private:
  static constexpr int kWidth = 256;

  explicit Hybrid(Kind kind);
  void add_delta_net_layers();
  void add_mamba_layers();
  void add_delta_net(DType type, bool tiled);
  void add_mamba2(DType type, int n_groups);
  void add_mamba1(DType type);
  void add_latent_experts();
  void add_attention(int window = 0);
  void add_experts();
  VectorId norm() { return p_.vector(kWidth, 1.0f, 0.2f); }

  ProgramForTest p_;
  BufferId x_;
};

}  // namespace chimere::parity
