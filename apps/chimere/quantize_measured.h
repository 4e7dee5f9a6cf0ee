// quantize_measured.h  What plans of `chimere quantize` are made from, and what a file is judged by.
#pragma once

#include <optional>
#include <string>

#include "quantize_task.h"
#include "quantizer/divergence.h"
#include "quantizer/losses.h"

namespace chimere::apps {

// What plans are made from: statistics, a text, and what was measured on them.
struct QuantizeMeasured {
  std::optional<quantizer::Statistics> statistics;
  std::optional<quantizer::Windows> probe_text, held_out;
  std::optional<quantizer::Losses> losses;
  std::string text_name = "no text";
  const quantizer::Statistics* weights() const { return statistics ? &*statistics : nullptr; }
};

// Statistics of --imatrix and the text of --text or --data-free, as far as they were asked for.
Status gather(const QuantizeOptions& o, const gguf::File& file, QuantizeMeasured& m);

// Fills in the losses: those of a file that is there, or measured anew and kept.
Status measure(const QuantizeOptions& o, const gguf::File& file, const quantizer::Plan& plan, QuantizeMeasured& m);

// The file that was written against its source, on text that nothing was measured on.
Result<quantizer::Divergence> judge(const QuantizeOptions& o, const QuantizeMeasured& m);

}  // namespace chimere::apps
