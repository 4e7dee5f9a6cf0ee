// encode_tensor.h  The bytes of one tensor in another type, chunk by chunk: memory does not grow with the tensor.
#pragma once

#include <functional>

#include "base/thread_pool.h"
#include "gguf/writer.h"
#include "quantizer/statistics.h"

namespace chimere::quantizer {

// Rows [first, first + n) as floats; refuses a value that is not finite, and one that `to` cannot hold, with the
// tensor's name and row.
Status read_rows(const TensorView& tensor, uint64_t first, uint64_t n, DType to, float* out);

// Encodes n rows of one expert (0 where there are none). `weights` as in encode.h.
void encode_any(DType type, int64_t n_rows, int64_t n_cols, const float* rows, const float* weights, std::byte* out);

// Hands the tensor in type `to` to the sink. Equal types are passed through as they are. `statistics` may be null.
// `read` is called when the pages of the tensor were read and may be dropped.
Status stream_encoded(const TensorView& tensor, DType to, const Statistics* statistics, ThreadPool& pool,
                      const std::function<void()>& read, const gguf::Writer::Sink& sink);

}  // namespace chimere::quantizer
