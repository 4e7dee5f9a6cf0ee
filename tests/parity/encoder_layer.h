// encoder_layer.h  A layer of an encoder as one row of the table: its ops share buffers, and its texts come in pairs.
#pragma once

#include <memory>
#include <string>

#include "table.h"

namespace chimere::parity {

struct EncoderShape {
  std::string name;
  int heads, head_dim, ff;
  DType type;
  float stddev;  // of its weights
  float attention_scale;
  bool has_output_bias;
};

std::unique_ptr<ParityCase> encoder_layer_case(const EncoderShape& s);

}  // namespace chimere::parity
