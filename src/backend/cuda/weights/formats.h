// formats.h  How quantised rows lie in device memory, and how 32 weights become bytes for dp4a.
//
// A row of the file is a list of small blocks, each with its scale beside its codes: lanes that take neighbouring
// blocks would read scattered bytes. In device memory a row is one record of `row_bytes` (a multiple of 16), and the
// record is planar: first all 16-byte pieces of the groups of 32 weights, then all 8-byte pieces, 4, 2, 1. Lane l of a
// warp takes group l, so that each load of a warp is one contiguous run. No information is lost and none added: sizes
// are those of the file, up to a few percent where 6-bit scales become bytes; only IQ3_S_wide spends a fifth more to be
// faster.
//
// A group is unpacked into eight words of four signed bytes, element 4j + b in byte b of word j, and scales:
//     weight(e) = scale[e / 16] * q[e] + min[e / 16]
// with kScales (1 or 2) and kMins (0, 1 or 2) different values. Two tricks keep the unpacking short:
//   - signed codes of n bits are stored in two's complement and put at the *top* of their byte: no sign extension, and
//     the scale carries the 2^-(8-n), exactly;
//   - a bit per element (signs, fifth bits) is stored as bit 8b + j of a word, element 4j + b: one shift and one mask
//     bring it beside word j.
// G is the number of groups of a row, g the group.
#pragma once

#include "backend/cuda/weights/format_table.h"

namespace chimere::cuda {

// What decode kernels keep of a format's codebook in shared memory.
CHIMERE_BOTH constexpr uint32_t book_bytes(DType type) { return type == DType::IQ3_S ? 512u * kIq3Copies * 4u : 0u; }

// Group g of a row of any packed quantised type, both scales and minima filled in. Code-books straight from `grids`.
CHIMERE_BOTH void unpack_any(DType type, const uint8_t* row, uint32_t G, uint32_t g, const IqGrids* grids, Group& out) {
  with_format(type, [&](auto f) {
    using F = decltype(f);
    const auto raw = F::load(row, G, g);
    if constexpr (F::kType == DType::IQ3_S) {
      F::template unpack_from<1>(raw, reinterpret_cast<const uint32_t*>(grids->iq3_s), out);
    } else {
      F::unpack(raw, CodeBooks{grids}, out);
    }
    if (F::kScales == 1) out.scale[1] = out.scale[0];
    if (F::kMins == 0) out.min[0] = 0.0f;
    if (F::kMins < 2) out.min[1] = out.min[0];
  });
}

}  // namespace chimere::cuda
