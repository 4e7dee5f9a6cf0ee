// quantize_task.h  What `chimere quantize` was asked for.
#pragma once

#include <string>
#include <vector>

#include "quantizer/goal.h"

namespace chimere::apps {

struct QuantizeOptions {
  std::string in, out;
  std::string folder;  // of a checkpoint, where that was given; `in` is then what was made of it
  std::string type, size, fits;
  double bits = 0, fastest = 0, read_price = 0;
  int context = 8192;
  std::string reserve = "256MiB";
  std::vector<std::string> keep, texts;
  std::string types_file, imatrix, losses, report;
  bool data_free = false, dry_run = false, export_llama = false, force = false;
  int probe_windows = 4, probe_context = 512;
  size_t probes = 96;
  int threads = 0;
};

struct QuantizeTask {
  quantizer::Goal goal;
  quantizer::Origin origin;
  std::vector<quantizer::Rule> rules;
};

// What can be refused by looking at the options alone, before any work is done.
Result<QuantizeTask> read_task(const QuantizeOptions& o);

}  // namespace chimere::apps
