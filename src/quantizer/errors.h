// errors.h  How much of a tensor a type loses: the real round trip through its encoder, on sampled rows.
//
//   relative = E|(W - Q) x|^2 / E|W x|^2
//
// where x has independent columns with the mean squares of the statistics (or all alike without them), and rows of an
// expert count as often as it is used. Rows are sampled evenly; the half-width is of a 95 % interval of the ratio.
#pragma once

#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "quantizer/statistics.h"

namespace chimere::quantizer {

struct TypeError {
  DType type = DType::F32;
  double relative = 0;
  double half_width = 0;  // 0 where all rows were seen
};

struct ErrorSampling {
  uint64_t max_elems = uint64_t{1} << 18;  // of a tensor, and at least min_rows rows
  uint64_t min_rows = 64;
};

// One for each type, in order. A type that cannot hold the values has an infinite error.
Result<std::vector<TypeError>> measure_errors(const TensorView& tensor, const std::vector<DType>& types,
                                              const Statistics* statistics, const ErrorSampling& sampling,
                                              ThreadPool& pool);

}  // namespace chimere::quantizer
