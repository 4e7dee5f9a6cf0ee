// Rows of the table: what a draft pass begins with.
#include <cmath>

#include "table.h"

namespace chimere::parity {
namespace {

// Of ordinary size, of none at all for the first token, tiny for the second: the state before a text is zeros.
std::vector<float> hidden_of(int32_t token, int width) {
  std::vector<float> hidden;
  for (int i = 0; i < width; ++i) {
    const float size = token == 0 ? 0.0f : token == 1 ? 1e-4f : 1.5f;
    hidden.push_back(size * std::sin(static_cast<float>(1 + token * 31 + i * 7 + i * i % 5)));
  }
  return hidden;
}

// One half of `out`. The trunk is another program, which must not run: it would give other rows.
std::unique_ptr<ParityCase> draft_input_case(int width, bool second) {
  auto c = std::make_unique<ParityCase>(53);
  ProgramForTest& p = c->p;
  Program& program = p.program;
  p.observe(p.input(width, 2.0f));
  program.trunk_end = {program.ops.size(), program.buffers.size(), program.matrices.size(), program.vectors.size()};
  const BufferId seen = p.zero_input(width);
  const auto table = static_cast<MatrixId>(program.matrices.size());
  const BufferId x = p.input(width, 0.5f);
  const op::DraftInput o{x, p.vector(width, 1.0f, 0.3f), p.vector(width, 1.0f, 0.3f), 1e-6f, p.buffer(2 * width)};
  program.ops.push_back(o);
  std::vector<float> pick(static_cast<size_t>(2 * width) * width, 0.0f);
  for (int i = 0; i < width; ++i) pick[static_cast<size_t>(i) * 2 * width + i + (second ? width : 0)] = 1.0f;
  program.ops.push_back(op::MatmulAdd{o.out, p.matrix_of(2 * width, width, pick), kNone, seen});
  p.observe(seen);
  c->draft_hidden = [width](int32_t token) { return hidden_of(token, width); };
  c->tolerance = [&p, o, table, width, second](int32_t token, bool) {
    const auto& vectors = p.program.vectors;
    if (second) return normed(exactly(hidden_of(token, width)), vectors[o.hidden_norm], o.eps).error;
    return normed(exactly(p.row(table, token)), vectors[o.x_norm], o.eps).error;
  };
  return c;
}

}  // namespace

Rows rows_of(Tag<op::DraftInput>) {
  Rows rows;
  for (const int width : {75, 512, 1}) {
    for (const bool second : {true, false}) {
      rows.push_back({std::string(second ? "draft_input_hidden_" : "draft_input_x_") + std::to_string(width),
                      [width, second] { return draft_input_case(width, second); }});
    }
  }
  return rows;
}

}  // namespace chimere::parity
