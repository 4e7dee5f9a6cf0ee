// target_stream.h  The bytes of one tensor of the converted file, row by row.
#pragma once

#include "convert/recipe.h"
#include "gguf/writer.h"

namespace chimere::convert {

// The type a tensor gets when matrices shall be `wanted`: rows that do not fill its blocks become F16.
DType stored_type(const Target& target, DType wanted);

// Whether the sources hold every row and column the target asks for; reads no values.
Status check_target(const Target& target);

// Reads, edits, encodes. Values that are not finite, or that F16 cannot hold, are refused with the tensor's name.
// Memory: one row and a buffer of a few megabytes. REQUIRES: check_target.
Status stream_target(const Checkpoint& checkpoint, const Target& target, DType type, const gguf::Writer::Sink& sink);

}  // namespace chimere::convert
