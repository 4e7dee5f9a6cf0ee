// adapter_values.h  The numbers of an adapter that learns: which there are, as one list, and the file they become.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/adapter.h"
#include "improve/mezo/trainer.h"

namespace chimere::improve {

// Parts of an adapter that learn, one behind the other in a list of floats.
struct TrainedPart {
  MatrixId matrix;
  bool is_b;
  size_t first, n;
  float reach;  // of a step, beside those of other parts: A is small, B begins at zero
};

struct AdapterValues {
  std::shared_ptr<Adapter> adapter;  // as it begins; for the model's program
  std::vector<TrainedPart> parts;
  std::vector<float> values;  // of the parts

  // Writes values into an adapter of the same shape.
  void fill(std::span<const float> from, Adapter& to) const;
};

// Of the matrices that `targets` names, and of `options.start`. A is drawn from the seed, B is zero. Fails where no
// matrix is named, or one is that adapters cannot change.
Result<AdapterValues> begin_values(models::Model& model, const TrainOptions& options, const std::string& targets,
                                   bool train_a, bool train_b);

Status write_adapter(const Adapter& adapter, models::Model& model, const std::string& path);

// Holds the adapter on the model's backend.
Status hold(models::Model& model, Adapter& adapter);

}  // namespace chimere::improve
