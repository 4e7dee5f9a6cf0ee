// eval_stages.h  What `chimere eval odo` measures, one function a stage.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "common.h"

namespace chimere::apps {

struct EvalOptions {
  ModelOptions model;
  std::string stage = "all";
  std::string questions;
  std::string routes;
  std::string dump;
  std::string embedding_model;  // a file, or none; empty: that of the box
  bool no_model = false;
  std::vector<std::string> adapters;
  bool no_judge = false;
  bool json = false;
  int n = 200;           // questions that a stage makes itself
  std::string arms;      // those of eval_arms.cpp that have this in their name; empty: all
  uint32_t seed = 2027;  // of those of the stages of eval_arms.cpp
};

Status eval_routing(const EvalOptions& options);
Status eval_tools(const EvalOptions& options);
Status eval_entropy(const EvalOptions& options);
Status eval_search(const EvalOptions& options);
Status eval_gate(const EvalOptions& options);
Status eval_few_shot(const EvalOptions& options);
Status eval_sources(const EvalOptions& options);
Status eval_retrieval(const EvalOptions& options);
Status eval_all(const EvalOptions& options);

}  // namespace chimere::apps
