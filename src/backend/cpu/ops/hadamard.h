// hadamard.h  The orthonormal rotation of queries and keys under KvFormat::rotate.
#pragma once

namespace chimere::cpu {

// The largest power of two that divides n.
constexpr int hadamard_block(int n) { return n & -n; }

// Multiplies each block of hadamard_block(n) elements of x by the Walsh-Hadamard matrix over sqrt(block). Applied
// twice it gives x back.
void hadamard(int n, float* x);

}  // namespace chimere::cpu
