// losses.h  What each type of each tensor is predicted to cost the model: measured errors times measured slopes.
//
// Measuring takes minutes, choosing milliseconds; so it is kept in a file beside the model and serves every other size.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "quantizer/errors.h"
#include "quantizer/plan.h"
#include "quantizer/probes.h"

namespace chimere::quantizer {

struct TensorLosses {
  double slope = 1;  // loss per relative error
  std::string class_name;
  std::vector<TypeError> errors;
};

struct Losses {
  uint64_t model = 0;       // fingerprint of the file
  uint64_t statistics = 0;  // hash of what the errors were weighted with; 0: nothing
  bool probed = false;      // slopes are measured: losses are KL divergences. Otherwise all slopes are 1
  std::string text;         // what they were measured on, in words
  std::map<std::string, TensorLosses, std::less<>> tensors;
};

Result<Losses> parse_losses(std::string_view json, const std::string& label);
Result<Losses> read_losses(const std::string& path);
std::string losses_text(const Losses& losses);
Status write_losses(const Losses& losses, const std::string& path);

// Errors of every tensor that has a choice; slopes are 1.
Result<Losses> measure_losses(const gguf::File& file, const Plan& plan, const Statistics* statistics,
                              const ErrorSampling& sampling, int n_threads,
                              const std::function<void(size_t done, size_t total)>& progress);

// Replaces the slopes by those that probes of the model give.
Status measure_slopes(const gguf::File& file, const Plan& plan, const Statistics* statistics, const Windows& windows,
                      size_t max_probes, const LoadOptions& options,
                      const std::function<void(size_t done, size_t total)>& progress, Losses& losses);

// Whether every type that a tensor of the plan may get was measured.
bool covers(const Losses& losses, const Plan& plan);

// Fills in Choice::loss, and leaves out types that cannot hold a tensor's values. Fails where a tensor is not known.
Status apply_losses(const Losses& losses, Plan& plan);

}  // namespace chimere::quantizer
