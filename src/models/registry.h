// registry.h  Which architectures there are. A new one is one file and one line in registry.cpp.
#pragma once

#include <span>
#include <string_view>

#include "backend/ops.h"
#include "base/result.h"
#include "models/weight_source.h"

namespace chimere::models {

struct Architecture {
  std::string_view name;  // general.architecture
  Result<Program> (*build)(WeightSource&);
  // The same with a draft pass where the file has one; null: nothing is known of such.
  Result<Program> (*build_drafting)(WeightSource&) = nullptr;
};

std::span<const Architecture> architectures();

// Picks the architecture by `general.architecture`, checks every tensor it needs, and writes its program, with a draft
// pass where that is wanted and the file has one.
Result<Program> build_program(WeightSource& source, bool drafts = false);

}  // namespace chimere::models
