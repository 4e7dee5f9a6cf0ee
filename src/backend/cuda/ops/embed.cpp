// embed.cpp  op::Embed: rows of the table, and for encoders positions and kinds of tokens on top.
#include "backend/cuda/kernels/rows/embed.h"

#include "backend/cuda/kernels/rows/encoder.h"
#include "backend/cuda/ops/bound_op.h"

namespace chimere::cuda {
namespace {

class BoundEmbed final : public BoundOp {
 public:
  BoundEmbed(const BindContext& c, const op::Embed& o)
      : BoundOp(Family::embed), adds_positions_(o.positions != kNone || o.kinds != kNone) {
    rows_.table = c.weight(o.table);
    rows_.out = c.buffer(o.out);
    rows_.scale = o.scale;
    positions_.positions = c.weight(o.positions);
    positions_.kinds = c.vector(o.kinds);
    positions_.width = c.width(o.out);
    if (o.kinds != kNone) {
      positions_.n_kinds = static_cast<int>(c.program.vectors[o.kinds].size()) / positions_.width;
    }
    positions_.out = rows_.out;
  }

  Status run(const Stream& stream, const PassShape& pass) const override {
    EmbedArgs rows = rows_;
    rows.ahead = pass.pinned_tokens != nullptr;
    rows.tokens = rows.ahead ? pass.pinned_tokens : pass.batch.tokens;
    rows.n_rows = pass.batch.n_rows;
    TRY(embed_rows(stream, rows));
    if (!adds_positions_) return Ok{};
    AddPositionsArgs positions = positions_;
    positions.batch = pass.batch;
    return add_positions(stream, positions);
  }

 private:
  EmbedArgs rows_{};
  const bool adds_positions_;
  AddPositionsArgs positions_{};
};

}  // namespace

BoundOpPtr bind_op(const BindContext& c, const op::Embed& o) { return std::make_unique<BoundEmbed>(c, o); }

}  // namespace chimere::cuda
