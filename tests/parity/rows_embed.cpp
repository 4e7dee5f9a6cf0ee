// Rows of the table: embeddings and the two ends of a program, logits and hidden states.
#include "encoder_layer.h"
#include "table.h"

namespace chimere::parity {
namespace {

std::unique_ptr<ParityCase> embed_case(DType type) {
  auto c = std::make_unique<ParityCase>(53);
  const int width = odd_width(type, 1);
  c->p.observe(c->p.input(width, 0.5f, type));
  c->allow(0, width);
  return c;
}

// A table that is the output head too lives in panels.
std::unique_ptr<ParityCase> tied_embed_case() {
  auto c = std::make_unique<ParityCase>(53);
  const BufferId x = c->p.input(512, 0.5f, DType::Q6_K);
  c->p.observe(x);
  std::get<op::LmHead>(c->p.program.ops.back()).weight = 0;
  c->allow(0, 512);
  return c;
}

// BERT's: three tables, and a pair of texts in each slice.
std::unique_ptr<ParityCase> summed_embed_case() {
  auto c = std::make_unique<ParityCase>(53);
  constexpr int kWidth = 75;
  const BufferId x = c->p.input(kWidth, 0.5f);
  auto& embed = std::get<op::Embed>(c->p.program.ops.back());
  embed.scale = 1.7f;
  embed.positions = c->p.matrix(DType::F16, kWidth, 32, 1, 0.5f);
  embed.kinds = c->p.vector(2 * kWidth, 0.1f, 0.5f);
  c->p.observe(x);
  c->has_pairs = true;
  c->allow(3 * kUlp * 8, kWidth);  // sums of three numbers below 8
  return c;
}

// Logits of chosen rows only, over vocabularies that fill no panel, with a real norm.
std::unique_ptr<ParityCase> head_case(DType type, int n_vocab) {
  auto c = std::make_unique<ParityCase>(n_vocab);
  ProgramForTest& p = c->p;
  const int width = odd_width(type, 1);
  p.program.d_model = width;
  const BufferId x = p.input(width, 2.0f);
  const op::LmHead head{x, p.vector(width, 1.0f, 0.3f), 1e-6f, p.matrix(type, width, n_vocab)};
  p.program.ops.push_back(head);
  c->steps = c->steps_if_slow = {{{0, 21}}};
  c->chosen_rows = {0, 3, 4, 19};
  c->scale = 1;
  c->rounding = 0;
  c->has_logits = true;
  c->tolerance = [&p, head, n_vocab](int32_t token, bool int8) {
    const Approx n = normed(exactly(p.row(0, token)), p.program.vectors[head.norm], head.eps);
    std::vector<double> allowed = n.error;
    const Approx y = product(p, head.weight, 0, n_vocab, n, int8);
    allowed.insert(allowed.end(), y.error.begin(), y.error.end());
    return allowed;
  };
  return c;
}

std::unique_ptr<ParityCase> hidden_out_case() {
  auto c = std::make_unique<ParityCase>(53);
  const BufferId x = c->p.input(75);
  c->p.program.ops.push_back(op::HiddenOut{x});
  c->p.program.d_model = 75;
  c->scale = 1;
  c->rounding = 0;
  c->allow(0, 75);
  return c;
}

}  // namespace

Rows rows_of(Tag<op::Embed>) {
  Rows rows = {{"embed_tied_q6_k", tied_embed_case}, {"embed_scaled_positions_kinds", summed_embed_case}};
  for (DType type : matrix_types()) {
    rows.push_back({"embed_" + lower_name(type), [type] { return embed_case(type); }, is_of_few(type)});
  }
  return rows;
}

Rows rows_of(Tag<op::LmHead>) {
  Rows rows;
  for (DType type : {DType::F32, DType::F16, DType::Q8_0, DType::Q4_K, DType::Q6_K, DType::IQ3_S}) {
    for (int n_vocab : {1, 15, 17, 131}) {
      rows.push_back({"lm_head_" + lower_name(type) + "_of_" + std::to_string(n_vocab),
                      [type, n_vocab] { return head_case(type, n_vocab); }, type == DType::F32 || n_vocab == 131});
    }
  }
  return rows;
}

Rows rows_of(Tag<op::HiddenOut>) {
  Rows rows;
  for (const EncoderShape& s : {EncoderShape{"f32", 3, 14, 75, DType::F32, 0.1f, 0.2f, true},
                                EncoderShape{"q8_0", 2, 64, 160, DType::Q8_0, 0.1f, 0.2f, true},
                                EncoderShape{"no_bias_f32", 3, 14, 75, DType::F32, 0.3f, 0.3f, false}}) {
    rows.push_back({"encoder_layer_" + s.name, [s] { return encoder_layer_case(s); }, s.has_output_bias});
  }
  rows.push_back({"hidden_out", hidden_out_case});
  return rows;
}

}  // namespace chimere::parity
