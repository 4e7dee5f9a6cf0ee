#include "models/dflash.h"

#include <algorithm>
#include <string>
#include <utility>

#include "models/layers.h"

namespace chimere::models {
namespace {

// The most rows that a block may have: all of it is verified in one slice of the decode class.
constexpr int kMaxBlock = kDecodeTokens;

struct DrafterConfig {
  Config base;
  std::vector<int> taps;  // layers of the model whose output is read, ascending
  DraftBlocks blocks;
  std::vector<int> windows;  // [n_layers]; 0: all that came before
};

Status refuse_relatives(WeightSource& source) {
  // Each of them is a drafter with a part more, without which its guesses are others.
  constexpr const char* kParts[][2] = {{"markov_w1.weight", "a DSpark drafter (Markov head)"},
                                       {"selector_hidden.weight", "a DFlash 2 drafter (candidate selector)"},
                                       {"blk.0.attn_q_a.weight", "a drafter with latent attention"},
                                       {"d2t", "a drafter with a vocabulary of its own"}};
  for (const auto& [tensor, what] : kParts) {
    if (!source.find(tensor, {1, 1, 1, 1}, false)) continue;
    return Error{Code::unsupported,
                 std::string("tensor '") + tensor + "': expected a plain DFlash drafter, found " + what};
  }
  return Ok{};
}

Result<std::vector<int>> read_taps(const gguf::Metadata& m, const std::string& key, int n_layers) {
  TRY_ASSIGN(const std::vector<int64_t> ids, m.get_ints(key, 1, n_layers));
  std::vector<int> taps;
  for (const int64_t id : ids) {
    // The file counts inputs of layers, the embedding among them: input i + 1 is the output of layer i.
    if (!taps.empty() && id - 1 <= taps.back()) {
      return Error{Code::corrupt, key + ": expected ascending numbers of layers, found " + std::to_string(id) +
                                      " behind " + std::to_string(taps.back() + 1)};
    }
    taps.push_back(static_cast<int>(id) - 1);
  }
  if (taps.empty()) return Error{Code::corrupt, key + ": expected at least one layer, found none"};
  return Result<std::vector<int>>{std::move(taps)};
}

Status read_windows(const gguf::Metadata& m, const Config& c, std::vector<int>& windows) {
  const auto n = static_cast<size_t>(c.n_layers);
  windows.assign(n, 0);
  TRY_ASSIGN(const int64_t window, m.get_int_or(c.key("attention.sliding_window"), 0, 1 << 24, 0));
  if (window == 0) return Ok{};
  TRY_ASSIGN(const std::vector<int64_t> has_one,
             m.get_int_per_layer(c.key("attention.sliding_window_pattern"), n, 0, 1));
  for (size_t i = 0; i < n; ++i) windows[i] = has_one[i] != 0 ? static_cast<int>(window) : 0;
  return Ok{};
}

Result<DrafterConfig> read_drafter(WeightSource& source, const Program& model) {
  const gguf::Metadata& m = source.metadata();
  TRY_ASSIGN(const std::string_view arch, m.get_string("general.architecture"));
  if (arch != "dflash") {
    return Error{Code::invalid_argument,
                 "general.architecture: expected a drafter, 'dflash', found '" + std::string(arch.substr(0, 64)) + "'"};
  }
  TRY(refuse_relatives(source));
  DrafterConfig d;
  TRY_ASSIGN(d.base, read_config(source));
  const Config& c = d.base;
  if (c.d_model != model.d_model || c.n_vocab != model.n_vocab) {
    return Error{Code::invalid_argument, "the drafter is for another model: expected a width of " +
                                             std::to_string(model.d_model) + " and " + std::to_string(model.n_vocab) +
                                             " tokens, found " + std::to_string(c.d_model) + " and " +
                                             std::to_string(c.n_vocab)};
  }
  if (c.n_experts > 0) return Error{Code::unsupported, c.key("expert_count") + ": a drafter with experts"};
  TRY_ASSIGN(d.taps, read_taps(m, c.key("target_layers"), static_cast<int>(model.layer_ends.size())));
  TRY_ASSIGN(const int64_t rows, m.get_int(c.key("block_size"), 2, kMaxBlock));
  TRY_ASSIGN(const int64_t mask, m.get_int("tokenizer.ggml.mask_token_id", 0, c.n_vocab - 1));
  d.blocks = {static_cast<int>(rows), static_cast<int32_t>(mask)};
  TRY(read_windows(m, c, d.windows));
  return Result<DrafterConfig>{std::move(d)};
}

// What the block pass and the trunk's part of the drafter share of a layer.
struct DraftLayer {
  op::Projection k, v;
  op::Attention attention;
};

// The pass over blocks, behind the trunk.
std::vector<DraftLayer> add_block_pass(Binder& b, const DrafterConfig& d, RopeId rope, const op::Embed& embed,
                                       const op::LmHead& head) {
  const Config& c = d.base;
  const auto width = static_cast<uint64_t>(c.d_model), v = static_cast<uint64_t>(c.n_vocab);
  const Trunk t{embed.out};
  AttentionStyle style{.qk_norm = true, .rope = rope, .bidirectional = true};
  const AttentionBuffers buffers = attention_buffers(b, c, style);
  const MatrixId own_table = b.matrix_if_present("token_embd.weight", {width, v});
  b.add(op::Embed{.table = own_table == kNone ? embed.table : own_table, .out = t.x, .scale = embed.scale});
  std::vector<DraftLayer> layers;
  for (int i = 0; i < c.n_layers; ++i) {
    style.window = d.windows[i];
    op::NormMatmul in = mixer_input(b, c, i, t);
    add_attention_projections(b, c, i, buffers, style, in);
    if (!b.status()) return {};
    DraftLayer layer{.k = in.outs[1], .v = in.outs[2], .attention = {}};
    b.add(std::move(in));
    const size_t at = b.program().ops.size();
    add_attention_mix(b, c, i, t, buffers, style);
    layer.attention = std::get<op::Attention>(b.program().ops[at]);
    layers.push_back(std::move(layer));
    add_dense_ffn(b, c, i, t, {.norm = "ffn_norm.weight"});
  }
  op::LmHead own = head;
  own.norm = b.vector("output_norm.weight", width);
  own.eps = c.eps;
  if (const MatrixId weight = b.matrix_if_present("output.weight", {width, v}); weight != kNone) own.weight = weight;
  b.add(own);
  return layers;
}

// The trunk's part: what is added after each tap, the last with all that follows from it.
std::vector<std::vector<Op>> tap_ops(Binder& b, const DrafterConfig& d, BufferId x,
                                     std::span<const DraftLayer> layers) {
  const Config& c = d.base;
  const auto width = static_cast<uint64_t>(c.d_model), n_taps = static_cast<uint64_t>(d.taps.size());
  const BufferId context = b.buffer("drafter_context", width);
  std::vector<std::vector<Op>> after(d.taps.size());
  for (uint64_t i = 0; i < n_taps; ++i) {
    const MatrixId part = b.columns("fc.weight", {n_taps * width, width}, i * width, width, "fc." + std::to_string(i));
    if (i == 0) {
      after[i].push_back(op::NormMatmul{.x = x, .outs = {{.weight = part, .out = context}}});
    } else {
      after[i].push_back(op::MatmulAdd{.x = x, .weight = part, .residual = context});
    }
  }
  op::NormMatmul project{.x = context, .norm = b.vector("enc.output_norm.weight", width), .eps = c.eps, .outs = {}};
  std::vector<Op> store;
  for (const DraftLayer& layer : layers) {
    op::Attention kept = layer.attention;
    const auto n_kv = static_cast<uint64_t>(kept.n_kv_heads);
    kept.q = kNone;
    kept.q_norm = kNone;
    kept.n_heads = kept.n_kv_heads;
    kept.k = b.buffer("drafter_k", n_kv * static_cast<uint64_t>(kept.head_dim_k));
    kept.v = b.buffer("drafter_v", n_kv * static_cast<uint64_t>(kept.head_dim_v));
    kept.out = kNone;
    kept.window = 0;
    kept.bidirectional = false;
    project.outs.push_back({.weight = layer.k.weight, .bias = layer.k.bias, .out = kept.k});
    project.outs.push_back({.weight = layer.v.weight, .bias = layer.v.bias, .out = kept.v});
    store.emplace_back(kept);
  }
  after.back().emplace_back(std::move(project));
  after.back().insert(after.back().end(), store.begin(), store.end());
  return after;
}

// Tensors of the drafter are called as the model's are: under a name of their own no adapter for the model's is applied
// to them.
void rename_matrices(Program& program, size_t first) {
  for (size_t i = first; i < program.matrices.size(); ++i) {
    auto named = std::make_shared<OwnedTensor>();
    named->name = "drafter." + std::string(program.matrices[i].name);
    program.matrices[i].name = named->name;
    program.owned.push_back(std::move(named));
  }
}

}  // namespace

Result<Program> attach_drafter(Program program, WeightSource& drafter) {
  if (!program.has_logits() || program.layer_ends.empty()) {
    return Error{Code::unsupported, "a drafter needs a model that writes text, whose layers can be read"};
  }
  TRY_ASSIGN(const DrafterConfig d, read_drafter(drafter, program));
  TRY_ASSIGN(Rope rope, read_rope(drafter, d.base, Rope::Pairing::half));
  const auto embed = std::get<op::Embed>(program.ops.front());
  const auto head = std::get<op::LmHead>(program.ops.back());
  // Its tensors and buffers are no part of what the model is said to have.
  TrunkEnd end{program.ops.size(), program.buffers.size(), program.matrices.size(), program.vectors.size(),
               program.kv_layers.size()};
  Binder b(drafter, std::move(program));
  const std::vector<DraftLayer> layers = add_block_pass(b, d, b.rope(std::move(rope)), embed, head);
  TRY(b.status());
  std::vector<std::vector<Op>> after = tap_ops(b, d, embed.out, layers);
  TRY_ASSIGN(Program whole, b.finish());
  rename_matrices(whole, end.matrices);

  std::vector<Op> ops;
  size_t tap = 0;
  for (size_t i = 0; i < whole.ops.size(); ++i) {
    if (tap < after.size() && whole.layer_ends[static_cast<size_t>(d.taps[tap])] == i) {
      end.ops += after[tap].size();
      ops.insert(ops.end(), std::make_move_iterator(after[tap].begin()), std::make_move_iterator(after[tap].end()));
      ++tap;
    }
    ops.push_back(std::move(whole.ops[i]));
  }
  whole.ops = std::move(ops);
  whole.layer_ends.clear();
  whole.trunk_end = end;
  whole.draft_blocks = d.blocks;
  return Result<Program>{std::move(whole)};
}

Status check_drafter(WeightSource& drafter) {
  constexpr size_t kManyLayers = 512;
  const gguf::Metadata& m = drafter.metadata();
  Program model;  // that it fits, as far as it says
  TRY_ASSIGN(const Config c, read_config(drafter));
  model.d_model = c.d_model;
  model.n_vocab = c.n_vocab;
  TRY_ASSIGN(const std::vector<int64_t> taps, m.get_ints(c.key("target_layers"), 1, kManyLayers));
  model.layer_ends.assign(taps.empty() ? 1 : static_cast<size_t>(*std::max_element(taps.begin(), taps.end())), 1);
  model.buffers.push_back({"x", c.d_model});
  model.ops = {op::Embed{.table = 0, .out = 0}, op::LmHead{.x = 0, .norm = 0, .eps = c.eps, .weight = 0}};
  TRY(attach_drafter(std::move(model), drafter));
  return Ok{};
}

}  // namespace chimere::models
