// vec.h  The float32 vector work that recurrent and attention ops are made of, once per instruction set.
//
// A table of plain functions, chosen once at start. The algorithms are written once, in isa/vec_body.h, over a small
// vector type; isa/vec_portable.cpp, vec_avx2.cpp, vec_avx512.cpp and vec_neon.cpp each supply that type.
//
// Bits: every result element is computed by a chain of operations that depends on its own inputs and lengths only,
// never on which rows or columns are computed beside it. So blocking, batching and threads do not change a bit. Two
// tables may differ from each other in the last bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chimere::cpu {

// Work on rows of the KV cache in one storage type, converted in registers; row t lies at rows + t * row_bytes.
struct KvKernels {
  // out[i * out_row + t] = q[i] . row t, for m queries [m][d] and n rows
  void (*dots)(int m, int n, int d, const float* q, const std::byte* rows, int64_t row_bytes, float* out,
               int64_t out_row);
  // o[i] += sum_t w[i * w_row + t] row t, for o [m][d], in the order of t
  void (*weighted)(int m, int n, int d, const float* w, int64_t w_row, const std::byte* rows, int64_t row_bytes,
                   float* o);
  // n elements, whole blocks: the same values as dequantize_row
  void (*decode)(int n, const std::byte* src, float* dst);
};

// Some tokens of the delta rule, in order, on one head's state.
struct DeltaTokens {
  int n;
  const float *q, *k;         // [n][d_key]
  const float* v;             // [n][d_value]
  const float *decay, *beta;  // [n]
  float* o;                   // [n][d_value]; null: only the state is wanted
};

struct VecKernels {
  const char* name;

  // C[m, n] = (accumulate ? C : 0) + A B. A[i][p] lies at a[i * a_row + p * a_col], so A may be read transposed; rows
  // of B and C are contiguous. Each element is one chain of fused multiply-adds in the order of p.
  void (*matmul)(int m, int n, int k, const float* a, int64_t a_row, int64_t a_col, const float* b, int64_t b_row,
                 float* c, int64_t c_row, bool accumulate);
  // C[i][j] = A[i] . B[j], both with contiguous rows of length k
  void (*dots)(int m, int n, int k, const float* a, int64_t a_row, const float* b, int64_t b_row, float* c,
               int64_t c_row);
  // out[c][r] = in[r][c]
  void (*transpose)(int rows, int cols, const float* in, int64_t in_row, float* out, int64_t out_row);

  float (*sum_squares)(int n, const float* x);
  float (*max)(int n, const float* x);                                            // n >= 1
  void (*scale)(int n, float s, const float* x, float* out);                      // out = s x; may be in place
  void (*scale_mul)(int n, float s, const float* x, const float* w, float* out);  // out = s x w
  void (*multiply_add)(int n, float s, const float* x, float* out);               // out += s x
  float (*exp_sum)(int n, float shift, float* x);                                 // x = exp(x - shift); returns the sum

  // out = silu(sum_j w[j * w_row + c] x[j][c]) for n channels c and `taps` rows x[j]
  void (*conv_silu)(int n, int taps, const float* const* x, const float* w, int64_t w_row, float* out);
  // out = s x w silu(z)
  void (*scale_mul_silu)(int n, float s, const float* x, const float* w, const float* z, float* out);
  // out = s x sigmoid(gate)
  void (*scale_sigmoid)(int n, float s, const float* x, const float* gate, float* out);

  // The delta rule on one head's state [d_key][d_value], for each token:
  //   state <- decay state;  delta = beta (v - state^T k);  state <- state + k delta^T;  o = state^T q
  // The first token leaves its state in `state`, the last of several leaves its own in `ahead`, which may be the same.
  void (*delta_steps)(int d_key, int d_value, const DeltaTokens& tokens, float* state, float* ahead);
  // One token of a state with one decay on one head's state [d_key][d_value]; o may be null:
  //   state <- decay state + k v^T;  o = state^T q
  void (*decay_step)(int d_key, int d_value, float* state, const float* q, const float* k, const float* v, float decay,
                     float* o);
  // One token of a state with a decay for each element, n columns of [d_state] rows `row` apart; y may be null:
  //   state[i][c] <- exp(dt[c] a[i][c]) state[i][c] + b[i] dt[c] x[c];  y[c] = sum_i q[i] state[i][c]
  void (*selective_step)(int d_state, int n, float* state, const float* a, int64_t row, const float* dt, const float* x,
                         const float* b, const float* q, float* y);
  // out = log(1 + exp(x + bias)); bias may be null
  void (*softplus)(int n, const float* x, const float* bias, float* out);
  void (*relu2)(int n, float* x);  // x = max(x, 0)^2
  // h = g sigmoid(1.702 g) (u + 1), g = min(gate, 7), u = clamp(h, -7, 7)
  void (*clamped_swiglu)(int n, const float* gate, float* h);
  // out[j] = s x[j] exp(g_row - g[j]), each g in two floats {high, low}: a running sum grows to hundreds inside a chunk
  // while the differences that matter are small.
  void (*decay_mul)(int n, float s, const float g_row[2], const float* g_high, const float* g_low, const float* x,
                    float* out);

  KvKernels kv_f32, kv_f16, kv_q8_0, kv_q4_0;
  void (*encode_f16)(int64_t n, const float* src, std::byte* dst);  // the same bits as quantize_row
};

extern const VecKernels kVecPortable;
#if defined(__x86_64__)
extern const VecKernels kVecAvx2;
extern const VecKernels kVecAvx512;
#elif defined(__aarch64__)
extern const VecKernels kVecNeon;
#endif

enum class Isa;

const VecKernels& vec(Isa isa);
const VecKernels& vec();  // of the active instruction set

}  // namespace chimere::cpu
