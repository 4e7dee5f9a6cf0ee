// tensor_part.h  What part of a model a tensor is, by its name: may it be quantised, how far, how often it is read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/gguf.h"
#include "tensor/tensor_view.h"

namespace chimere::quantizer {

struct TensorPart {
  int layer = -1;    // of "blk.N."; -1 outside of blocks
  std::string part;  // "ffn_down_exps", "token_embd": the name without its block and ".weight"
};

TensorPart part_of(std::string_view tensor_name);

// Why the tensor stays as it is, whatever is asked for; empty when it may be quantised. Norms, biases and convolutions
// are small and multiply everything behind them; a router whose choice flips costs more than its bits ever save.
std::string_view why_kept(const TensorView& tensor);

// The fewest bits a weight of this part gets from an automatic plan. What errors in recurrent gates do adds up over a
// context far longer than any text that errors are measured on, so the measurement alone is not trusted there.
double floor_bits(const TensorPart& part);

// Of the tensor's bytes, the share that is read for one token: all of a dense matrix, the chosen experts of a bank, a
// row of an embedding table that is not the head, too.
double read_share(const TensorView& tensor, const gguf::File& file);

// Types the tensor can be written in, fewest bits first: whole blocks in its rows, an encoder, or F16 and F32.
std::vector<DType> possible_types(const TensorView& tensor);

// `wanted`, or where rows do not fill its blocks the smallest type of at least its bits whose blocks they do fill.
DType nearest_possible(const TensorView& tensor, DType wanted);

// A type this program can write, by its name in any case; an error with the nearest name otherwise.
Result<DType> writable_type(std::string_view name);

// Bytes of the tensor in that type.
uint64_t bytes_as(const TensorView& tensor, DType type);

}  // namespace chimere::quantizer
