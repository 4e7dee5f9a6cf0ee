// batch_view.h  A batch as kernels see it: in device memory, so that a captured graph stays valid from step to step.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chimere::cuda {

// A Slice of the batch. Positions, states and pages are read on the device: a graph depends only on the shape.
struct DeviceSlice {
  std::byte* const* kv_pages;  // device array of device pages
  float* recurrent;            // the blob of StateLayout
  float* replay;               // null unless inputs are recorded
  int32_t pos;
  int32_t n_tokens;
  int32_t first_row;
  int32_t second_kind_at;
};

struct BatchView {
  const int32_t* tokens;      // [n_rows]
  const DeviceSlice* slices;  // [n_slices]
  const int32_t* row_slice;   // [n_rows] the slice a row belongs to
  const int32_t* row_pos;     // [n_rows] its absolute position
  const int32_t* logit_rows;  // [n_logit_rows]
  int n_rows;
  int n_slices;
  int n_logit_rows;
};

}  // namespace chimere::cuda
