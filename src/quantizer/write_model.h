// write_model.h  Writes a file as planned: tensor by tensor, in constant memory, in as many runs as it takes.
#pragma once

#include <functional>
#include <string>

#include "gguf/writer.h"
#include "quantizer/plan.h"
#include "quantizer/statistics.h"

namespace chimere::quantizer {

// What the file says of its making.
struct Origin {
  std::string how;              // "--bpw 3.5": the goal in the words it was asked for
  std::string statistics_file;  // the name alone; empty: none
  double predicted_loss = 0;    // mean KL divergence, where it was measured; 0: not
};

// Size of the file that write_model will write, to the byte.
Result<uint64_t> planned_bytes(const gguf::File& file, const Plan& plan, const Statistics* statistics,
                               const Origin& origin);

// `statistics` may be null. The same source, plan and statistics give the same bytes, also when a run was killed and
// another one goes on (Writer::write_file_in_runs).
Status write_model(const gguf::File& file, const Plan& plan, const Statistics* statistics, const Origin& origin,
                   const std::string& out, int n_threads, const gguf::Writer::Progress& progress);

}  // namespace chimere::quantizer
