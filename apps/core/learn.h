// learn.h  `chimere-core learn`: an adapter from examples as token ids, for machines without any package.
#pragma once

#include <string>

#include "base/result.h"
#include "improve/mezo/trainer.h"

namespace chimere {

// Examples are lines of numbers: where the answer begins, then the ids. The report is one JSON object.
Status learn(models::Model& model, const std::string& examples, const std::string& held_out,
             const improve::TrainOptions& options, const std::string& out);

}  // namespace chimere
