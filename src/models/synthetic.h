// synthetic.h  Models with the shapes of real ones and random weights, built in memory: to measure how fast a machine
// will be before anything is downloaded.
//
// Those of Qwen3.5 have their draft block, which is made when it is loaded (LoadOptions::drafts).
//
// Routing over random weights is close to uniform, the worst case for caches. Tensors of one type and size are views of
// a shared pool at different offsets; a backend that repacks gives each its own memory, so timings are those of the
// real model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/weight_source.h"

namespace chimere::models {

// The names of the models and of the mixes of formats, each separated by ", ".
std::string synthetic_models();
std::string synthetic_mixes();

// `spec` is MODEL or MODEL:MIX, e.g. "qwen3.5-tiny:q4_k"; the mix defaults to iq3_s, of Nemotron to q4_0.
Result<std::unique_ptr<WeightSource>> synthetic_source(const std::string& spec);

}  // namespace chimere::models
