// every_isa.h  For tests: runs a test once per set of vector kernels that this machine has.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/cpu/cpu_features.h"
#include "backend/cpu/vec.h"

namespace chimere::cpu {

class EveryIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { set_isa_for_testing(GetParam()); }
  void TearDown() override { set_isa_for_testing(detect_isa()); }
};

// Some levels share their vector kernels: avx512vnni those of avx512, all of arm64 those of neon.
inline std::vector<Isa> vector_isas() {
  std::vector<Isa> isas;
  for (Isa isa : available_isas()) {
    if (isas.empty() || &vec(isa) != &vec(isas.back())) isas.push_back(isa);
  }
  return isas;
}

inline std::string isa_name(const testing::TestParamInfo<Isa>& info) { return std::string(name(info.param)); }

}  // namespace chimere::cpu
