// probes.h  What the error of a class of tensors does to the model's answers: some tensors quantised, KL measured.
//
// A class is a part ("ffn_down_exps") in a range of layers; the more probes are allowed, the finer the ranges, up to one
// tensor each. The divergence is nearly quadratic in the weights' error, so it is proportional to the sum of the class's
// relative errors, and one slope describes it. Errors of different classes are independent and their losses add up.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "quantizer/divergence.h"
#include "quantizer/plan.h"
#include "quantizer/statistics.h"

namespace chimere::quantizer {

struct TensorClass {
  std::string name;           // "ffn_down_exps" or "ffn_down_exps 0-3"
  std::vector<size_t> items;  // of the plan
};

// At most about max_classes of them, over the tensors that have a choice.
std::vector<TensorClass> classes_of(const Plan& plan, size_t max_classes);

// A model whose tensors named in `types` are quantised in memory; the others are the file's.
Result<std::unique_ptr<models::Model>> load_quantised(const gguf::File& file, const std::map<std::string, DType>& types,
                                                      const Statistics* statistics, const LoadOptions& options);

// The mean KL divergence from the base with each of the classes in turn at the type that `type_of` names.
Result<std::vector<double>> probe_classes(const gguf::File& file, const Plan& plan,
                                          const std::vector<TensorClass>& classes,
                                          const std::function<DType(const PlanItem&)>& type_of,
                                          const Statistics* statistics, const Base& base, const LoadOptions& options,
                                          const std::function<void(size_t done)>& progress);

// Text of the model's own: `n_windows` windows of `context` tokens, drawn at temperature 1. For models without text.
Result<Windows> own_text(models::Model& model, int context, size_t n_windows, int32_t first_token, uint64_t seed);

}  // namespace chimere::quantizer
