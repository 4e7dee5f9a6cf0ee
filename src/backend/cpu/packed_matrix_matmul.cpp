// packed_matrix_matmul.cpp  Cuts a product into tiles of tokens and runs of panels, and picks the kernels.
//
// Loop order: runs of panels that fit in a part of the L2 cache; inside, tiles of tokens whose activations stay in the
// L1 cache; inside, the panels of the run. So weights come from memory once, however many tokens there are.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backend/cpu/cpu_features.h"
#include "backend/cpu/packed_matrix.h"
#include "backend/cpu/packed_matrix_dispatch.h"
#include "base/check.h"

namespace chimere::cpu {

namespace {

constexpr int64_t kRunBytes = 256 * 1024;     // a quarter of the smallest L2 we care about
constexpr int64_t kTileActBytes = 48 * 1024;  // beyond the L1, but read in order; smaller tiles unpack more often

const PanelKernels& kernels_of(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512vnni: return panel_kernels_avx512vnni();
    case Isa::avx512: return panel_kernels_avx512();
    case Isa::avx2: return panel_kernels_avx2();
#elif defined(__aarch64__)
    case Isa::i8mm: return panel_kernels_i8mm();
    case Isa::dotprod: return panel_kernels_dotprod();
    case Isa::neon: return panel_kernels_neon();
#endif
    default: return panel_kernels_scalar();
  }
}

// The largest tile up to `limit` that has a kernel.
int largest_tile(const TileFn (&fns)[kMaxTile + 1], int limit) {
  int n = std::min(limit, kMaxTile);
  while (!fns[n]) --n;
  return n;
}

// Even shares: 17 tokens are 9 and 8, not 16 and a single one that unpacks all weights for itself.
int next_tile(const TileFn (&fns)[kMaxTile + 1], int max_tile, int tokens) {
  const int n_tiles = (tokens + max_tile - 1) / max_tile;
  return largest_tile(fns, (tokens + n_tiles - 1) / n_tiles);
}

// IQ3_S panels looked up once for all the tiles of a call: a look-up costs as much as the dot products of four tokens.
// Laid out as iq3_s_bytes, in one buffer a thread.
class ExpandedPanels {
 public:
  explicit ExpandedPanels(const PackedMatrix& w)
      : w_(w),
        blocks_(w.n_cols() / kBlockCols),
        scales_offset_(blocks_ * code_bytes(Codes::bits8)),
        panel_bytes_(scales_offset_ + w.panel_bytes() - w.scales_offset()) {}

  int64_t panel_bytes() const { return panel_bytes_; }
  int64_t scales_offset() const { return scales_offset_; }

  // Valid until the next call on this thread.
  const uint8_t* expand(const PanelKernels& kernels, int expert, int begin, int end) const {
    thread_local std::vector<uint8_t> buffer;
    constexpr size_t kAlign = 64;
    const size_t need = static_cast<size_t>((end - begin) * panel_bytes_) + kAlign;
    if (buffer.size() < need) buffer.resize(need);
    uint8_t* first = buffer.data() + (kAlign - reinterpret_cast<uintptr_t>(buffer.data()) % kAlign) % kAlign;
    uint8_t* dst = first;
    for (int panel = begin; panel < end; ++panel, dst += panel_bytes_) {
      const uint8_t* src = w_.panel(expert, panel);
      kernels.expand_grid(*panel_tables(w_.type()).grid, src, blocks_, dst);
      std::memcpy(dst + scales_offset_, src + w_.scales_offset(), static_cast<size_t>(panel_bytes_ - scales_offset_));
    }
    return first;
  }

 private:
  const PackedMatrix& w_;
  int64_t blocks_;
  int64_t scales_offset_;
  int64_t panel_bytes_;
};

}  // namespace

const PanelKernels& panel_kernels() { return kernels_of(active_isa()); }

void matmul(const PackedMatrix& w, int expert, const Activations& x, std::span<const int32_t> act_rows, int n_tokens,
            ActMode mode, float* y, int64_t ld_y, int panel_begin, int panel_end, std::span<const int32_t> out_rows) {
  CHECK(x.k() == w.n_cols() && expert >= 0 && expert < w.n_experts());
  CHECK(0 <= panel_begin && panel_end <= w.n_panels());
  CHECK(act_rows.empty() ? n_tokens <= x.n_rows() : act_rows.size() >= static_cast<size_t>(n_tokens));
  CHECK(out_rows.empty() || out_rows.size() >= static_cast<size_t>(n_tokens));
  const PanelKernels& kernels = panel_kernels();
  const bool int8 = mode == ActMode::int8 && !w.is_float();
  const auto& tables = int8 ? kernels.int8 : kernels.f32;

  const int64_t token_bytes =
      int8 ? w.n_cols() / kBlockCols * static_cast<int64_t>(sizeof(ActBlock)) : w.n_cols() * int64_t{sizeof(float)};
  const int max_tile = largest_tile(
      tables[static_cast<int>(w.kind())],
      static_cast<int>(std::clamp<int64_t>(kTileActBytes / std::max<int64_t>(token_bytes, 1), 8, kMaxTile)));
  const bool one_tile = n_tokens <= max_tile;
  const bool expand = w.kind() == PanelKind::iq3_s && !one_tile;
  const auto& fns = tables[static_cast<int>(expand ? PanelKind::iq3_s_bytes : w.kind())];
  const ExpandedPanels expanded(w);
  const int64_t panel_bytes = expand ? expanded.panel_bytes() : w.panel_bytes();
  const int run = one_tile ? panel_end - panel_begin
                           : static_cast<int>(std::max<int64_t>(1, kRunBytes / std::max<int64_t>(panel_bytes, 1)));

  const ActBlock* act[kMaxTile];
  const float* rows[kMaxTile];
  float* out[kMaxTile];
  TileArgs args{};
  args.panel_bytes = panel_bytes;
  args.scales_offset = expand ? expanded.scales_offset() : w.scales_offset();
  args.n_cols = w.n_cols();
  args.tables = &panel_tables(w.type());
  args.act = act;
  args.x = rows;
  args.y = out;
  for (int panel = panel_begin; panel < panel_end; panel += run) {
    const int end = std::min(panel + run, panel_end);
    args.panels = expand ? expanded.expand(kernels, expert, panel, end) : w.panel(expert, panel);
    args.n_panels = end - panel;
    args.last_rows = static_cast<int>(std::min<int64_t>(kPanelRows, w.n_rows() - int64_t{end - 1} * kPanelRows));
    for (int token = 0; token < n_tokens;) {
      const int tile = next_tile(fns, max_tile, n_tokens - token);
      for (int t = 0; t < tile; ++t) {
        const int64_t row = act_rows.empty() ? token + t : act_rows[token + t];
        if (int8) {
          act[t] = x.blocks(row);
        } else {
          rows[t] = x.row(row);
        }
        const int64_t out_row = out_rows.empty() ? token + t : out_rows[token + t];
        out[t] = y + out_row * ld_y + int64_t{panel} * kPanelRows;
      }
      fns[tile](args);
      token += tile;
    }
  }
}

}  // namespace chimere::cpu
