// eval_stages.h  What `chimere eval odo` measures, one function a stage.
#pragma once

#include <string>

#include "base/result.h"
#include "common.h"

namespace chimere::apps {

struct EvalOptions {
  ModelOptions model;
  std::string stage = "routing";
  std::string questions;
  std::string routes;
  std::string dump;
  bool no_model = false;
  bool json = false;
  int n = 200;  // questions that a stage makes itself
};

Status eval_routing(const EvalOptions& options);
Status eval_tools(const EvalOptions& options);
Status eval_entropy(const EvalOptions& options);

}  // namespace chimere::apps
