// adapter.h  Low-rank changes to a model's matrices, applied beside them: y = W x + scale B (A x).
//
// The matrices keep their format and are shared by all; each slice of a batch names the adapters of its sequence, so
// that requests with different ones run in one step. A row's change is computed by itself, in a fixed order: its bits
// do not depend on what else is in the batch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/ops.h"

namespace chimere {

struct LowRank {
  int rank = 0;          // 0: the matrix is unchanged
  std::vector<float> a;  // [rank][in]
  std::vector<float> b;  // [rank][out], times alpha / rank
};

struct Adapter {
  std::string name;
  uint64_t fingerprint = 0;          // of its content
  std::vector<LowRank> by_matrix;    // by MatrixId
  std::shared_ptr<const void> held;  // from Executable::hold_adapter of the executable it was loaded for

  const LowRank* find(MatrixId id) const {
    const auto at = static_cast<size_t>(id);
    return at < by_matrix.size() && by_matrix[at].rank > 0 ? &by_matrix[at] : nullptr;
  }
  uint64_t size_bytes() const;
};

// The adapters of a request, in order; their changes add up.
struct AdapterSet {
  struct Use {
    std::shared_ptr<const Adapter> adapter;
    float scale = 1;
  };
  std::vector<Use> uses;

  // A hash of contents and scales: state computed under one key is of no use under another.
  uint64_t key() const;
};

// Whether a matrix can have a change: those of NormMatmul, MatmulAdd, DenseFfn and the trunk's LmHead. By MatrixId.
std::vector<bool> adaptable_matrices(const Program& program);

// What files of adapters call a matrix. Where the table of embeddings serves as output head, too, a change is of the
// head alone, and is called output.weight.
std::string adapted_name(const Program& program, MatrixId id);

}  // namespace chimere
