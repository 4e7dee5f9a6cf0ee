// routing_bench.cpp  Which experts a model uses on a text, token by token, and what caches of experts would find.
//
//   routing_bench MODEL.gguf TEXT [TOKENS]      2,000 tokens of the text when nothing is said, read one at a time on the CPU
//
// Of every layer as many experts are held as `slots` says. A use is found when its expert is held at that moment.
//   fixed      the first ones, for ever
//   LRU        the one whose last use is longest ago gives way, at every miss
//   uses       the rule of cuda/mapped_experts.h: counts that fade, looked at every 16 tokens
//   predicted  LRU, and before a layer is used, what the router of that layer would choose at the layer before is fetched
// A prediction asks the next layer's router with the residual stream as the router before it saw it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <list>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "engine/score.h"
#include "models/model.h"
#include "tensor/dequantize.h"
#include "tokenizer/tokenizer.h"

namespace {

using namespace chimere;

struct Layer {
  const op::MoeFfn* op = nullptr;
  std::vector<float> router;           // [n_experts][width]
  std::vector<std::vector<int>> used;  // of every token
  std::vector<std::vector<int>> predicted;
};

std::vector<float> floats_of(const TensorView& matrix) {
  std::vector<float> values(matrix.elems());
  for (uint64_t r = 0; r < matrix.rows(); ++r) {
    dequantize_row(matrix.type, matrix.row(r), values.data() + r * matrix.ne[0], static_cast<int64_t>(matrix.ne[0]));
  }
  return values;
}

// Watches a model read a text.
class Trace {
 public:
  void see(const MatrixInput& in) {
    if (layers.empty()) find_layers(in.program);
    if (const auto found = by_router_.find(in.matrix); found != by_router_.end()) {
      layers[found->second].used.emplace_back();
      predict(in, found->second);
    } else if (const auto up = by_up_.find(in.matrix); up != by_up_.end()) {
      layers[up->second].used.back().push_back(in.expert);
    }
  }

  std::vector<Layer> layers;

 private:
  void find_layers(const Program& program) {
    for (const Op& op : program.trunk()) {
      const auto* moe = std::get_if<op::MoeFfn>(&op);
      if (!moe) continue;
      by_router_[moe->router] = by_up_[moe->up] = layers.size();
      layers.push_back({moe, floats_of(program.matrices[moe->router]), {}, {}});
    }
  }

  void predict(const MatrixInput& in, size_t i) {
    if (i + 1 == layers.size()) return;
    Layer& next = layers[i + 1];
    const std::vector<float>&here = in.program.vectors[layers[i].op->norm], &there = in.program.vectors[next.op->norm];
    const auto width = static_cast<size_t>(in.width);
    std::vector<std::pair<float, int>> logits;
    for (int e = 0; e < next.op->n_experts; ++e) {
      const float* row = next.router.data() + static_cast<size_t>(e) * width;
      float sum = next.op->router_bias == kNone ? 0 : in.program.vectors[next.op->router_bias][static_cast<size_t>(e)];
      for (size_t c = 0; c < width; ++c) sum += row[c] * in.rows[c] / here[c] * there[c];
      logits.emplace_back(-sum, e);
    }
    std::sort(logits.begin(), logits.end());
    std::vector<int>& order = next.predicted.emplace_back();
    for (const auto& [logit, e] : logits) order.push_back(e);
  }

  std::map<MatrixId, size_t> by_router_, by_up_;
};

struct Found {
  double hits = 0, uses = 0, fetched = 0;
  void add(bool is_held) { hits += is_held, uses += 1; }
};

void fixed(const Layer& layer, int slots, Found& found) {
  for (const auto& used : layer.used) {
    for (const int e : used) found.add(e < slots);
  }
}

void lru(const Layer& layer, size_t slots, bool predicts, Found& found) {
  std::list<int> held;  // last used first
  const auto touch = [&](int e) {
    const auto at = std::find(held.begin(), held.end(), e);
    const bool was_held = at != held.end();
    if (was_held) held.erase(at);
    held.push_front(e);
    if (held.size() > slots) held.pop_back();
    found.fetched += was_held ? 0 : 1;
    return was_held;
  };
  const auto n_used = static_cast<size_t>(layer.op->n_used);
  for (size_t t = 0; t < layer.used.size(); ++t) {
    if (predicts && !layer.predicted.empty()) {
      for (size_t k = std::min(n_used, slots); k-- > 0;) touch(layer.predicted[t][k]);
    }
    for (const int e : layer.used[t]) found.add(touch(e));
  }
}

void by_uses(const Layer& layer, int slots, Found& found) {
  constexpr size_t kEvery = 16;
  const auto n = static_cast<size_t>(layer.op->n_experts);
  std::vector<float> heat(n, 0), now(n, 0);
  std::vector<bool> held(n, false);
  std::fill_n(held.begin(), slots, true);
  for (size_t t = 0; t < layer.used.size(); ++t) {
    for (const int e : layer.used[t]) found.add(held[static_cast<size_t>(e)]), now[static_cast<size_t>(e)] += 1;
    if (t % kEvery != kEvery - 1) continue;
    for (size_t e = 0; e < n; ++e) heat[e] = heat[e] * 0.97f + std::exchange(now[e], 0.0f);
    for (int move = 0; move < 8; ++move) {
      int coldest = -1, hottest = -1;
      for (int e = 0; e < static_cast<int>(n); ++e) {
        int& which = held[static_cast<size_t>(e)] ? coldest : hottest;
        const float h = heat[static_cast<size_t>(e)], other = which < 0 ? 0 : heat[static_cast<size_t>(which)];
        if (which < 0 || (held[static_cast<size_t>(e)] ? h < other : h > other)) which = e;
      }
      if (coldest < 0 || hottest < 0) break;
      const auto out = static_cast<size_t>(coldest), in = static_cast<size_t>(hottest);
      if (heat[in] <= heat[out] * 1.25f + 1) break;
      held[out] = false, held[in] = true;
      found.fetched += 1;
    }
  }
}

void print(const std::vector<Layer>& layers) {
  const auto n_tokens = static_cast<double>(layers.front().used.size());
  const op::MoeFfn& op = *layers.front().op;
  for (const int k : {op.n_used, 3 * op.n_used / 2, 2 * op.n_used}) {
    double right = 0, all = 0;
    for (const Layer& layer : layers) {
      for (size_t t = 0; t < layer.predicted.size(); ++t) {
        const auto end = layer.predicted[t].begin() + std::min(k, layer.op->n_experts);
        for (const int e : layer.used[t]) right += std::find(layer.predicted[t].begin(), end, e) != end, all += 1;
      }
    }
    std::printf("of the experts that a layer uses, %.1f %% are among the %d predicted a layer before\n",
                100 * right / all, k);
  }
  std::printf("%-12s %10s %10s %10s %10s   found of uses; experts fetched a token of all %zu layers\n", "slots",
              "fixed", "LRU", "uses", "predicted", layers.size());
  for (int slots = op.n_used; slots < op.n_experts; slots += std::max(1, op.n_experts / 12)) {
    Found found[4];
    for (const Layer& layer : layers) {
      fixed(layer, slots, found[0]);
      lru(layer, static_cast<size_t>(slots), false, found[1]);
      by_uses(layer, slots, found[2]);
      lru(layer, static_cast<size_t>(slots), true, found[3]);
    }
    std::printf("%3d of %-5d", slots, op.n_experts);
    for (const Found& f : found) std::printf(" %8.1f %%", 100 * f.hits / f.uses);
    std::printf("  ");
    for (const Found& f : found) std::printf(" %6.2f", f.fetched / n_tokens);
    std::printf("\n");
  }
}

Status run(const std::string& file, const std::string& text_file, size_t n_tokens) {
  Trace trace;
  LoadOptions options;
  options.observe = [&trace](const MatrixInput& in) { trace.see(in); };
  TRY_ASSIGN(auto model, models::Model::load(file, models::BackendKind::cpu, std::move(options)));
  TRY_ASSIGN(const Tokenizer tokenizer, Tokenizer::from_metadata(model->metadata()));
  std::ifstream in(text_file, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  if (text.empty()) return Error{Code::io, text_file + ": expected a text"};
  std::vector<int32_t> ids = tokenizer.encode(text, EncodeMode::plain, true);
  ids.resize(std::min(ids.size(), n_tokens));
  const auto ignore = [](std::span<const float>) {};
  TRY(engine::all_logits(*model, ids, static_cast<int>(ids.size()), ignore));
  if (trace.layers.empty()) return Error{Code::invalid_argument, file + ": expected a model with experts"};
  print(trace.layers);
  return Ok{};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "routing_bench MODEL.gguf TEXT [TOKENS]\n");
    return 2;
  }
  const Status done = run(argv[1], argv[2], argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 2000);
  if (!done) std::fprintf(stderr, "routing_bench: %s\n", done.error().message.c_str());
  return done ? 0 : 1;
}
