// vec_body.h  The algorithms of vec.h over a vector type V. Included by one vec_*.cpp per instruction set, after V.
//
// V offers: kLanes, Reg, zero, set1, load, load_n (rest zero), store, store_n, add, sub, mul, div, fma (a b + c), min
// and max (the second operand when one is NaN), round (to nearest), pow2 (of an integer in [-127, 127], 0 for -127),
// sum, sum4 (of four registers at once), maximum, f16_value, load_f16, load_i8, load_i4 (nibbles less 8, low or high),
// store_f16, transpose_block(in, in_row, out, out_row) of kLanes x kLanes, and the tile sizes kTileRows (matmul),
// kDotQueries (scores) and kStripVecs (delta rule).
//
// Everything here has internal linkage: the file is compiled once per instruction set, and no function of one set may
// stand in for another's. For the same reason no library header comes in that defines inline functions.
#pragma once

namespace {

using Reg = V::Reg;
constexpr int kLanes = V::kLanes;

inline Reg load_some(const float* p, int n) { return n >= kLanes ? V::load(p) : V::load_n(p, n); }
inline void store_some(float* p, Reg x, int n) {
  if (n >= kLanes) {
    V::store(p, x);
  } else {
    V::store_n(p, x, n);
  }
}

// exp(x) to about 1 ulp: x = n ln2 + r, |r| <= ln2 / 2, a degree-7 Taylor polynomial of r times 2^n. Below -87.7 the
// result is 0 (no denormals), above 88.3 it stays at 2.2e38; NaN stays NaN.
inline Reg exp_reg(Reg x) {
  x = V::max(V::set1(-88.0f), V::min(V::set1(88.3f), x));
  const Reg n = V::round(V::mul(x, V::set1(1.44269504088896341f)));
  Reg r = V::fma(n, V::set1(-0.693359375f), x);  // ln2 in two parts, the first short enough that n times it is exact
  r = V::fma(n, V::set1(2.12194440054690583e-4f), r);
  Reg p = V::set1(1.0f / 5040);
  p = V::fma(p, r, V::set1(1.0f / 720));
  p = V::fma(p, r, V::set1(1.0f / 120));
  p = V::fma(p, r, V::set1(1.0f / 24));
  p = V::fma(p, r, V::set1(1.0f / 6));
  p = V::fma(p, r, V::set1(0.5f));
  p = V::fma(p, r, V::set1(1.0f));
  p = V::fma(p, r, V::set1(1.0f));
  return V::mul(p, V::pow2(n));
}

inline Reg sigmoid_reg(Reg x) {
  const Reg one = V::set1(1.0f);
  return V::div(one, V::add(one, exp_reg(V::sub(V::zero(), x))));
}

inline Reg silu_reg(Reg x) { return V::div(x, V::add(V::set1(1.0f), exp_reg(V::sub(V::zero(), x)))); }

// A tile of C: `Rows` rows by `Vecs` vectors, the last of which has `tail` valid lanes when Tail is set.
template <int Rows, int Vecs, bool Tail>
inline void matmul_tile(int k, const float* a, int64_t a_row, int64_t a_col, const float* b, int64_t b_row, float* c,
                        int64_t c_row, bool accumulate, int tail) {
  Reg acc[Rows][Vecs];
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < Vecs; ++j) {
      acc[i][j] = !accumulate ? V::zero()
                  : Tail      ? V::load_n(c + i * c_row + j * kLanes, tail)
                              : V::load(c + i * c_row + j * kLanes);
    }
  }
  for (int p = 0; p < k; ++p) {
    Reg bv[Vecs];
    for (int j = 0; j < Vecs; ++j) bv[j] = Tail ? V::load_n(b + j * kLanes, tail) : V::load(b + j * kLanes);
    for (int i = 0; i < Rows; ++i) {
      const Reg av = V::set1(a[i * a_row]);
      for (int j = 0; j < Vecs; ++j) acc[i][j] = V::fma(av, bv[j], acc[i][j]);
    }
    a += a_col;
    b += b_row;
  }
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < Vecs; ++j) {
      if (Tail) {
        V::store_n(c + i * c_row + j * kLanes, acc[i][j], tail);
      } else {
        V::store(c + i * c_row + j * kLanes, acc[i][j]);
      }
    }
  }
}

template <int Rows, int Vecs, bool Tail>
void matmul_rows(int m, int k, const float* a, int64_t a_row, int64_t a_col, const float* b, int64_t b_row, float* c,
                 int64_t c_row, bool accumulate, int tail) {
  for (; m >= Rows; m -= Rows) {
    matmul_tile<Rows, Vecs, Tail>(k, a, a_row, a_col, b, b_row, c, c_row, accumulate, tail);
    a += Rows * a_row;
    c += Rows * c_row;
  }
  if constexpr (Rows > 1) {
    if (m > 0) matmul_rows<Rows / 2, Vecs, Tail>(m, k, a, a_row, a_col, b, b_row, c, c_row, accumulate, tail);
  }
}

void matmul(int m, int n, int k, const float* a, int64_t a_row, int64_t a_col, const float* b, int64_t b_row, float* c,
            int64_t c_row, bool accumulate) {
  // A strip of B, kDepth rows by two vectors, is met again by every tile of rows: 16 KiB at 16 lanes, half an L1 cache.
  constexpr int kDepth = 128;
  for (int p = 0; p < k || p == 0; p += kDepth) {
    const int depth = k - p < kDepth ? k - p : kDepth;
    const bool add = accumulate || p > 0;
    const float* ap = a + p * a_col;
    const float* bp = b + p * b_row;
    int j = 0;
    for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
      matmul_rows<V::kTileRows, 2, false>(m, depth, ap, a_row, a_col, bp + j, b_row, c + j, c_row, add, 0);
    }
    if (j + kLanes <= n) {
      matmul_rows<V::kTileRows, 1, false>(m, depth, ap, a_row, a_col, bp + j, b_row, c + j, c_row, add, 0);
      j += kLanes;
    }
    if (j < n) {
      matmul_rows<V::kTileRows, 1, true>(m, depth, ap, a_row, a_col, bp + j, b_row, c + j, c_row, add, n - j);
    }
  }
}

// How a stored row is read: load puts elements i .. i + Vecs * kLanes into registers, i a multiple of that count;
// load_n reads the last n < kLanes elements.
struct F32Row {
  template <int Vecs>
  static void load(const std::byte* row, int i, Reg* out) {
    for (int j = 0; j < Vecs; ++j) out[j] = V::load(reinterpret_cast<const float*>(row) + i + j * kLanes);
  }
  static Reg load_n(const std::byte* row, int i, int n) {
    return V::load_n(reinterpret_cast<const float*>(row) + i, n);
  }
};
struct F16Row {
  template <int Vecs>
  static void load(const std::byte* row, int i, Reg* out) {
    for (int j = 0; j < Vecs; ++j) out[j] = V::load_f16(row + 2 * (i + j * kLanes));
  }
  static Reg load_n(const std::byte* row, int i, int n) {
    alignas(64) std::byte halves[2 * kLanes] = {};
    for (int j = 0; j < 2 * n; ++j) halves[j] = row[2 * i + j];
    return V::load_f16(halves);
  }
};
// One or two registers lie inside one block of 32, and rows of whole blocks have no tail.
struct Q8Row {
  template <int Vecs>
  static void load(const std::byte* row, int i, Reg* out) {
    static_assert(32 % (Vecs * kLanes) == 0);
    const std::byte* block = row + i / 32 * 34;
    const Reg d = V::set1(V::f16_value(block));
    for (int j = 0; j < Vecs; ++j) out[j] = V::mul(d, V::load_i8(block + 2 + i % 32 + j * kLanes));
  }
  static Reg load_n(const std::byte*, int, int) { return V::zero(); }
};
struct Q4Row {
  template <int Vecs>
  static void load(const std::byte* row, int i, Reg* out) {
    static_assert(32 % (Vecs * kLanes) == 0);
    const std::byte* block = row + i / 32 * 18;
    const Reg d = V::set1(V::f16_value(block));
    const int first = Vecs * kLanes == 32 ? 0 : i % 32;
    for (int j = 0; j < Vecs; ++j) {
      const int e = first + j * kLanes;
      out[j] = V::mul(d, V::load_i4(block + 2 + e % 16, e >= 16));
    }
  }
  static Reg load_n(const std::byte*, int, int) { return V::zero(); }
};

template <class Row, int Queries, int Vecs>
inline void dots_step(const float* q, int64_t q_row, const std::byte* const* rows, int p, Reg (&acc)[Queries][4]) {
  Reg qv[Queries][Vecs];
  for (int i = 0; i < Queries; ++i) {
    for (int u = 0; u < Vecs; ++u) qv[i][u] = V::load(q + i * q_row + p + u * kLanes);
  }
  for (int j = 0; j < 4; ++j) {
    Reg k[Vecs];
    Row::template load<Vecs>(rows[j], p, k);
    for (int u = 0; u < Vecs; ++u) {
      for (int i = 0; i < Queries; ++i) acc[i][j] = V::fma(qv[i][u], k[u], acc[i][j]);
    }
  }
}

// Scores of `Queries` queries with four stored rows.
template <class Row, int Queries>
inline void dots_tile(int d, const float* q, int64_t q_row, const std::byte* const* rows, float* out, int64_t out_row,
                      int n) {
  Reg acc[Queries][4];
  for (int i = 0; i < Queries; ++i) {
    for (int j = 0; j < 4; ++j) acc[i][j] = V::zero();
  }
  int p = 0;
  for (; p + 2 * kLanes <= d; p += 2 * kLanes) dots_step<Row, Queries, 2>(q, q_row, rows, p, acc);
  if (p + kLanes <= d) {
    dots_step<Row, Queries, 1>(q, q_row, rows, p, acc);
    p += kLanes;
  }
  if (p < d) {
    for (int j = 0; j < 4; ++j) {
      const Reg k = Row::load_n(rows[j], p, d - p);
      for (int i = 0; i < Queries; ++i) acc[i][j] = V::fma(V::load_n(q + i * q_row + p, d - p), k, acc[i][j]);
    }
  }
  for (int i = 0; i < Queries; ++i) {
    float sums[4];
    V::sum4(acc[i][0], acc[i][1], acc[i][2], acc[i][3], sums);
    for (int j = 0; j < n; ++j) out[i * out_row + j] = sums[j];
  }
}

template <class Row>
inline void row_dots(int m, int n, int d, const float* q, int64_t q_row, const std::byte* rows, int64_t row_bytes,
                     float* out, int64_t out_row) {
  for (int t = 0; t < n; t += 4) {
    // Always four rows: at the edge the last one again, whose scores are dropped.
    const int valid = n - t < 4 ? n - t : 4;
    const std::byte* four[4];
    for (int j = 0; j < 4; ++j) four[j] = rows + (t + (j < valid ? j : valid - 1)) * row_bytes;
    int i = 0;
    for (; i + V::kDotQueries <= m; i += V::kDotQueries) {
      dots_tile<Row, V::kDotQueries>(d, q + i * q_row, q_row, four, out + i * out_row + t, out_row, valid);
    }
    for (; i + 2 <= m; i += 2) {
      dots_tile<Row, 2>(d, q + i * q_row, q_row, four, out + i * out_row + t, out_row, valid);
    }
    for (; i < m; ++i) dots_tile<Row, 1>(d, q + i * q_row, q_row, four, out + i * out_row + t, out_row, valid);
  }
}

template <class Row>
void kv_dots(int m, int n, int d, const float* q, const std::byte* rows, int64_t row_bytes, float* out,
             int64_t out_row) {
  row_dots<Row>(m, n, d, q, d, rows, row_bytes, out, out_row);
}

void dots(int m, int n, int k, const float* a, int64_t a_row, const float* b, int64_t b_row, float* c, int64_t c_row) {
  row_dots<F32Row>(m, n, k, a, a_row, reinterpret_cast<const std::byte*>(b),
                   b_row * static_cast<int64_t>(sizeof(float)), c, c_row);
}

template <class Row, int Queries, int Vecs>
inline void weighted_tile(int n, int d, const float* w, int64_t w_row, const std::byte* rows, int64_t row_bytes, int at,
                          float* o) {
  Reg acc[Queries][Vecs];
  for (int i = 0; i < Queries; ++i) {
    for (int j = 0; j < Vecs; ++j) acc[i][j] = V::load(o + i * d + at + j * kLanes);
  }
  for (int t = 0; t < n; ++t, rows += row_bytes) {
    Reg v[Vecs];
    Row::template load<Vecs>(rows, at, v);
    for (int i = 0; i < Queries; ++i) {
      const Reg weight = V::set1(w[i * w_row + t]);
      for (int j = 0; j < Vecs; ++j) acc[i][j] = V::fma(weight, v[j], acc[i][j]);
    }
  }
  for (int i = 0; i < Queries; ++i) {
    for (int j = 0; j < Vecs; ++j) V::store(o + i * d + at + j * kLanes, acc[i][j]);
  }
}

template <class Row, int Queries>
void weighted_queries(int m, int n, int d, const float* w, int64_t w_row, const std::byte* rows, int64_t row_bytes,
                      float* o) {
  for (; m >= Queries; m -= Queries, w += Queries * w_row, o += Queries * d) {
    int at = 0;
    for (; at + 2 * kLanes <= d; at += 2 * kLanes)
      weighted_tile<Row, Queries, 2>(n, d, w, w_row, rows, row_bytes, at, o);
    for (; at + kLanes <= d; at += kLanes) weighted_tile<Row, Queries, 1>(n, d, w, w_row, rows, row_bytes, at, o);
    if (at == d) continue;
    for (int i = 0; i < Queries; ++i) {
      Reg acc = V::load_n(o + i * d + at, d - at);
      for (int t = 0; t < n; ++t) {
        acc = V::fma(V::set1(w[i * w_row + t]), Row::load_n(rows + t * row_bytes, at, d - at), acc);
      }
      V::store_n(o + i * d + at, acc, d - at);
    }
  }
  if constexpr (Queries > 1) {
    if (m > 0) weighted_queries<Row, Queries / 2>(m, n, d, w, w_row, rows, row_bytes, o);
  }
}

template <class Row>
void kv_weighted(int m, int n, int d, const float* w, int64_t w_row, const std::byte* rows, int64_t row_bytes,
                 float* o) {
  weighted_queries<Row, V::kTileRows>(m, n, d, w, w_row, rows, row_bytes, o);
}

template <class Row>
void kv_decode(int n, const std::byte* src, float* dst) {
  int i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    Reg x[2];
    Row::template load<2>(src, i, x);
    V::store(dst + i, x[0]);
    V::store(dst + i + kLanes, x[1]);
  }
  if (i + kLanes <= n) {
    Reg x;
    Row::template load<1>(src, i, &x);
    V::store(dst + i, x);
    i += kLanes;
  }
  if (i < n) V::store_n(dst + i, Row::load_n(src, i, n - i), n - i);
}

void transpose(int rows, int cols, const float* in, int64_t in_row, float* out, int64_t out_row) {
  int r = 0;
  for (; r + kLanes <= rows; r += kLanes) {
    int c = 0;
    for (; c + kLanes <= cols; c += kLanes)
      V::transpose_block(in + r * in_row + c, in_row, out + c * out_row + r, out_row);
    for (; c < cols; ++c) {
      for (int i = r; i < r + kLanes; ++i) out[c * out_row + i] = in[i * in_row + c];
    }
  }
  for (; r < rows; ++r) {
    for (int c = 0; c < cols; ++c) out[c * out_row + r] = in[r * in_row + c];
  }
}

float sum_squares(int n, const float* x) {
  Reg acc = V::zero();
  for (int i = 0; i < n; i += kLanes) {
    const Reg v = load_some(x + i, n - i);
    acc = V::fma(v, v, acc);
  }
  return V::sum(acc);
}

float max(int n, const float* x) {
  Reg acc = V::set1(x[0]);
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) acc = V::max(acc, V::load(x + i));
  float best = V::maximum(acc);
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

void scale(int n, float s, const float* x, float* out) {
  for (int i = 0; i < n; i += kLanes) store_some(out + i, V::mul(V::set1(s), load_some(x + i, n - i)), n - i);
}

void scale_mul(int n, float s, const float* x, const float* w, float* out) {
  for (int i = 0; i < n; i += kLanes) {
    store_some(out + i, V::mul(V::mul(V::set1(s), load_some(x + i, n - i)), load_some(w + i, n - i)), n - i);
  }
}

void multiply_add(int n, float s, const float* x, float* out) {
  for (int i = 0; i < n; i += kLanes) {
    store_some(out + i, V::fma(V::set1(s), load_some(x + i, n - i), load_some(out + i, n - i)), n - i);
  }
}

float exp_sum(int n, float shift, float* x) {
  Reg acc = V::zero();
  const Reg s = V::set1(shift);
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Reg e = exp_reg(V::sub(V::load(x + i), s));
    V::store(x + i, e);
    acc = V::add(acc, e);
  }
  if (i < n) {
    V::store_n(x + i, exp_reg(V::sub(V::load_n(x + i, n - i), s)), n - i);
    acc = V::add(acc, V::load_n(x + i, n - i));
  }
  return V::sum(acc);
}

void conv_silu(int n, int taps, const float* const* x, const float* w, int64_t w_row, float* out) {
  for (int i = 0; i < n; i += kLanes) {
    Reg acc = V::zero();
    for (int j = 0; j < taps; ++j) {
      acc = V::fma(load_some(w + j * w_row + i, n - i), load_some(x[j] + i, n - i), acc);
    }
    store_some(out + i, silu_reg(acc), n - i);
  }
}

void scale_mul_silu(int n, float s, const float* x, const float* w, const float* z, float* out) {
  for (int i = 0; i < n; i += kLanes) {
    const Reg y = V::mul(V::mul(V::set1(s), load_some(x + i, n - i)), load_some(w + i, n - i));
    store_some(out + i, V::mul(y, silu_reg(load_some(z + i, n - i))), n - i);
  }
}

void scale_sigmoid(int n, float s, const float* x, const float* gate, float* out) {
  for (int i = 0; i < n; i += kLanes) {
    const Reg y = V::mul(V::set1(s), load_some(x + i, n - i));
    store_some(out + i, V::mul(y, sigmoid_reg(load_some(gate + i, n - i))), n - i);
  }
}

// A strip of `Vecs` vectors of the state. The first pass only reads (decay is a factor of the whole sum), so a state
// in main memory streams in once; the next finds it in the L2 cache and writes it. With what it writes for one token it
// already reads for the next: n tokens are n + 1 passes.
template <int Vecs, bool Tail>
void delta_strip(int d_key, int64_t row, const DeltaTokens& tokens, int first, float* state, float* ahead) {
  const int tail = static_cast<int>(row) - first;
  const auto load = [&](const float* p) { return Tail ? V::load_n(p, tail) : V::load(p); };
  const auto store = [&](float* p, Reg x) {
    if (Tail) {
      V::store_n(p, x, tail);
    } else {
      V::store(p, x);
    }
  };
  Reg read[Vecs];
  for (int j = 0; j < Vecs; ++j) read[j] = V::zero();
  for (int i = 0; i < d_key; ++i) {
    const Reg ki = V::set1(tokens.k[i]);
    for (int j = 0; j < Vecs; ++j) read[j] = V::fma(ki, load(state + i * row + first + j * kLanes), read[j]);
  }
  const auto step = [&]<bool ReadsNext>(int t) {
    const float *q = tokens.q + int64_t{t} * d_key, *k = tokens.k + int64_t{t} * d_key;
    const float* v = tokens.v + t * row + first;
    const float* from = (t < 2 ? state : ahead) + first;
    float* to = (t == 0 ? state : ahead) + first;
    const Reg decay_reg = V::set1(tokens.decay[t]);
    Reg delta[Vecs], out[Vecs];
    for (int j = 0; j < Vecs; ++j) {
      delta[j] = V::mul(V::set1(tokens.beta[t]), V::sub(load(v + j * kLanes), V::mul(decay_reg, read[j])));
      out[j] = V::zero();
      read[j] = V::zero();
    }
    for (int i = 0; i < d_key; ++i) {
      const Reg ki = V::set1(k[i]);
      const Reg qi = V::set1(q[i]);
      for (int j = 0; j < Vecs; ++j) {
        const int64_t at = i * row + j * kLanes;
        const Reg s = V::fma(ki, delta[j], V::mul(decay_reg, load(from + at)));
        store(to + at, s);
        out[j] = V::fma(qi, s, out[j]);
        if constexpr (ReadsNext) read[j] = V::fma(V::set1(k[d_key + i]), s, read[j]);
      }
    }
    if (tokens.o == nullptr) return;
    for (int j = 0; j < Vecs; ++j) store(tokens.o + t * row + first + j * kLanes, out[j]);
  };
  for (int t = 0; t + 1 < tokens.n; ++t) step.template operator()<true>(t);
  step.template operator()<false>(tokens.n - 1);
}

void delta_steps(int d_key, int d_value, const DeltaTokens& tokens, float* state, float* ahead) {
  int c = 0;
  const auto strip = [&]<int Vecs, bool Tail>() {
    delta_strip<Vecs, Tail>(d_key, d_value, tokens, c, state, ahead);
    c += Vecs * kLanes;
  };
  while (c + V::kStripVecs * kLanes <= d_value) strip.template operator()<V::kStripVecs, false>();
  while (c + kLanes <= d_value) strip.template operator()<1, false>();
  if (c < d_value) strip.template operator()<1, true>();
}

template <int Vecs, bool Tail>
inline void decay_strip(int d_key, int64_t row, float* state, const float* q, const float* k, const float* v,
                        float decay, float* o, int tail) {
  const auto load = [&](const float* p) { return Tail ? V::load_n(p, tail) : V::load(p); };
  const auto store = [&](float* p, Reg x) {
    if (Tail) {
      V::store_n(p, x, tail);
    } else {
      V::store(p, x);
    }
  };
  const Reg decay_reg = V::set1(decay);
  Reg value[Vecs], out[Vecs];
  for (int j = 0; j < Vecs; ++j) {
    value[j] = load(v + j * kLanes);
    out[j] = V::zero();
  }
  for (int i = 0; i < d_key; ++i) {
    const Reg ki = V::set1(k[i]);
    const Reg qi = V::set1(q[i]);
    for (int j = 0; j < Vecs; ++j) {
      float* p = state + i * row + j * kLanes;
      const Reg s = V::fma(ki, value[j], V::mul(decay_reg, load(p)));
      store(p, s);
      out[j] = V::fma(qi, s, out[j]);
    }
  }
  if (o == nullptr) return;
  for (int j = 0; j < Vecs; ++j) store(o + j * kLanes, out[j]);
}

void decay_step(int d_key, int d_value, float* state, const float* q, const float* k, const float* v, float decay,
                float* o) {
  int c = 0;
  const auto strip = [&]<int Vecs, bool Tail>() {
    decay_strip<Vecs, Tail>(d_key, d_value, state + c, q, k, v + c, decay, o == nullptr ? nullptr : o + c, d_value - c);
    c += Vecs * kLanes;
  };
  while (c + V::kStripVecs * kLanes <= d_value) strip.template operator()<V::kStripVecs, false>();
  while (c + kLanes <= d_value) strip.template operator()<1, false>();
  if (c < d_value) strip.template operator()<1, true>();
}

void selective_step(int d_state, int n, float* state, const float* a, int64_t row, const float* dt, const float* x,
                    const float* b, const float* q, float* y) {
  for (int c = 0; c < n; c += kLanes) {
    const Reg step = load_some(dt + c, n - c);
    const Reg in = V::mul(step, load_some(x + c, n - c));
    Reg out = V::zero();
    for (int i = 0; i < d_state; ++i) {
      float* p = state + i * row + c;
      const Reg decay = exp_reg(V::mul(step, load_some(a + i * row + c, n - c)));
      const Reg s = V::fma(V::set1(b[i]), in, V::mul(decay, load_some(p, n - c)));
      store_some(p, s, n - c);
      if (q != nullptr) out = V::fma(V::set1(q[i]), s, out);
    }
    if (y != nullptr) store_some(y + c, out, n - c);
  }
}

// log(1 + e^x) = max(x, 0) + log(1 + u), u = e^-|x|. With s = u / (2 + u) <= 1/3 the latter is 2 artanh s, an odd
// series whose ninth term is below 1e-8 of the first.
inline Reg softplus_reg(Reg x) {
  const Reg u = exp_reg(V::min(x, V::sub(V::zero(), x)));
  const Reg s = V::div(u, V::add(V::set1(2.0f), u));
  const Reg s2 = V::mul(s, s);
  Reg p = V::set1(2.0f / 15);
  p = V::fma(p, s2, V::set1(2.0f / 13));
  p = V::fma(p, s2, V::set1(2.0f / 11));
  p = V::fma(p, s2, V::set1(2.0f / 9));
  p = V::fma(p, s2, V::set1(2.0f / 7));
  p = V::fma(p, s2, V::set1(2.0f / 5));
  p = V::fma(p, s2, V::set1(2.0f / 3));
  p = V::fma(p, s2, V::set1(2.0f));
  return V::fma(p, s, V::max(V::zero(), x));
}

void softplus(int n, const float* x, const float* bias, float* out) {
  for (int i = 0; i < n; i += kLanes) {
    Reg v = load_some(x + i, n - i);
    if (bias != nullptr) v = V::add(v, load_some(bias + i, n - i));
    store_some(out + i, softplus_reg(v), n - i);
  }
}

void relu2(int n, float* x) {
  for (int i = 0; i < n; i += kLanes) {
    const Reg v = V::max(V::zero(), load_some(x + i, n - i));
    store_some(x + i, V::mul(v, v), n - i);
  }
}

void clamped_swiglu(int n, const float* gate, float* h) {
  for (int i = 0; i < n; i += kLanes) {
    const Reg g = V::min(V::set1(7.0f), load_some(gate + i, n - i));
    const Reg u = V::max(V::set1(-7.0f), V::min(V::set1(7.0f), load_some(h + i, n - i)));
    const Reg s = V::mul(g, sigmoid_reg(V::mul(V::set1(1.702f), g)));
    store_some(h + i, V::mul(s, V::add(u, V::set1(1.0f))), n - i);
  }
}

void decay_mul(int n, float s, const float g_row[2], const float* g_high, const float* g_low, const float* x,
               float* out) {
  for (int i = 0; i < n; i += kLanes) {
    const Reg high = V::sub(V::set1(g_row[0]), load_some(g_high + i, n - i));
    const Reg low = V::sub(V::set1(g_row[1]), load_some(g_low + i, n - i));
    const Reg d = exp_reg(V::add(high, low));
    store_some(out + i, V::mul(V::mul(V::set1(s), load_some(x + i, n - i)), d), n - i);
  }
}

void encode_f16(int64_t n, const float* src, std::byte* dst) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) V::store_f16(dst + 2 * i, V::load(src + i));
  if (i < n) {
    alignas(64) float rest[kLanes] = {};
    alignas(64) std::byte halves[2 * kLanes];
    for (int64_t j = i; j < n; ++j) rest[j - i] = src[j];
    V::store_f16(halves, V::load(rest));
    for (int64_t j = 0; j < 2 * (n - i); ++j) dst[2 * i + j] = halves[j];
  }
}

template <class Row>
constexpr KvKernels kv_table() {
  return {kv_dots<Row>, kv_weighted<Row>, kv_decode<Row>};
}

constexpr VecKernels table(const char* name) {
  return {.name = name,
          .matmul = matmul,
          .dots = dots,
          .transpose = transpose,
          .sum_squares = sum_squares,
          .max = max,
          .scale = scale,
          .scale_mul = scale_mul,
          .multiply_add = multiply_add,
          .exp_sum = exp_sum,
          .conv_silu = conv_silu,
          .scale_mul_silu = scale_mul_silu,
          .scale_sigmoid = scale_sigmoid,
          .delta_steps = delta_steps,
          .decay_step = decay_step,
          .selective_step = selective_step,
          .softplus = softplus,
          .relu2 = relu2,
          .clamped_swiglu = clamped_swiglu,
          .decay_mul = decay_mul,
          .kv_f32 = kv_table<F32Row>(),
          .kv_f16 = kv_table<F16Row>(),
          .kv_q8_0 = kv_table<Q8Row>(),
          .kv_q4_0 = kv_table<Q4Row>(),
          .encode_f16 = encode_f16};
}

}  // namespace
