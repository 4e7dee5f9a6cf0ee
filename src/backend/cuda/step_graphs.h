// step_graphs.h  Graphs of decode steps, one for each shape that keeps coming back.
//
// A shape is launched kernel by kernel when it is seen first and captured when it is seen again: tails of prompts come
// in many shapes once, decoding comes in few of them thousands of times. The graphs used last are kept.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <vector>

#include "backend/cuda/drawing.h"
#include "backend/cuda/pass_shape.h"
#include "backend/cuda/runtime/graph.h"
#include "backend/cuda/runtime/ledger.h"

namespace chimere::cuda {

// A pass, and what is drawn from its logits in the same graph; then the passes of a chain of drafts, each over what was
// drawn in the one before.
struct StepShape {
  PassShape pass;
  DrawShape draws;
  std::vector<PassShape> chain = {};
  bool row_hidden = false;  // hidden vectors of all rows go to the host

  bool operator==(const StepShape&) const = default;
};

class StepGraphs {
 public:
  // Drafts come in up to 16 numbers of rows, their passes in as many and in several depths.
  static constexpr size_t kMost = 96;

  explicit StepGraphs(Ledger& ledger) : ledger_(ledger) {}
  ~StepGraphs() { clear(); }
  StepGraphs(const StepGraphs&) = delete;

  // Gives the stream what `record` gives it, which depends on the shape alone.
  Status launch(const Stream& stream, const StepShape& shape, const std::function<Status()>& record);
  // For when something moved whose address they hold. REQUIRES: the stream is done with them.
  void clear();

  size_t n_graphs() const;
  uint64_t n_launches() const { return n_launches_; }  // of graphs

 private:
  struct Entry {
    StepShape shape;
    std::optional<Graph> graph;
  };
  void forget_last();

  Ledger& ledger_;
  std::list<Entry> entries_;  // used last in front
  uint64_t n_launches_ = 0;
};

}  // namespace chimere::cuda
