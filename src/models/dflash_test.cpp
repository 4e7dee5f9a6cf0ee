// dflash_test.cpp  A drafter behind a model against its formula, written once more here in doubles; and files that are no
// drafter for the model.
#include "models/dflash.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/scratch_for_test.h"
#include "models/drafter_for_test.h"
#include "models/fixture_for_test.h"
#include "models/registry.h"
#include "models/runs_for_test.h"
#include "tensor/dequantize.h"

namespace chimere::models {
namespace {

using Vec = std::vector<double>;

// Values of a tensor by name.
class Weights {
 public:
  explicit Weights(const gguf::File& file) : file_(file) {}
  std::vector<float> operator()(const std::string& name) const {
    const TensorView* t = file_.find(name);
    EXPECT_TRUE(t) << name;
    std::vector<float> values(t->elems());
    for (uint64_t r = 0; r < t->rows(); ++r) {
      dequantize_row(t->type, t->row(r), values.data() + r * t->ne[0], static_cast<int64_t>(t->ne[0]));
    }
    return values;
  }

 private:
  const gguf::File& file_;
};

Vec times(const std::vector<float>& w, const Vec& x) {
  Vec y(w.size() / x.size(), 0.0);
  for (size_t o = 0; o < y.size(); ++o) {
    for (size_t i = 0; i < x.size(); ++i) y[o] += w[o * x.size() + i] * x[i];
  }
  return y;
}

Vec rms(const Vec& x, const std::vector<float>& w) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  const double scale = 1 / std::sqrt(sum / static_cast<double>(x.size()) + 1e-6);
  Vec y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * w[i];
  return y;
}

// Heads of a row, normed and turned to their position.
std::vector<Vec> heads(const Vec& row, size_t dim, const std::vector<float>* norm, int pos) {
  std::vector<Vec> all;
  for (size_t at = 0; at < row.size(); at += dim) {
    Vec head(row.begin() + static_cast<std::ptrdiff_t>(at), row.begin() + static_cast<std::ptrdiff_t>(at + dim));
    if (norm) {
      head = rms(head, *norm);
      for (size_t k = 0; k < dim / 2; ++k) {
        const double angle = pos * std::pow(10000.0, -2.0 * static_cast<double>(k) / static_cast<double>(dim));
        const double a = head[k], b = head[k + dim / 2];
        head[k] = a * std::cos(angle) - b * std::sin(angle);
        head[k + dim / 2] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
    all.push_back(std::move(head));
  }
  return all;
}

struct DrafterOracle {
  const fixture::DrafterShape& shape;
  Weights of_drafter, of_model;
  std::string head;  // its tensor in the model's file

  // Logits of every row of a block behind `states`: [positions][taps * width].
  std::vector<Vec> run(const std::vector<Vec>& states, const std::vector<int32_t>& block) const {
    const auto fc = of_drafter("fc.weight"), norm = of_drafter("enc.output_norm.weight");
    std::vector<Vec> context, x;
    for (const Vec& s : states) context.push_back(rms(times(fc, s), norm));
    const auto table = of_model("token_embd.weight");
    for (const int32_t id : block) {
      const auto at = table.begin() + static_cast<std::ptrdiff_t>(static_cast<uint64_t>(id) * shape.width);
      x.emplace_back(at, at + static_cast<std::ptrdiff_t>(shape.width));
    }
    for (int i = 0; i < shape.n_layers; ++i) layer(i, context, x);
    std::vector<Vec> logits;
    for (const Vec& row : x) logits.push_back(times(of_model(head), rms(row, of_drafter("output_norm.weight"))));
    return logits;
  }

  void layer(int i, const std::vector<Vec>& context, std::vector<Vec>& x) const {
    const auto w = [&](const char* name) { return of_drafter("blk." + std::to_string(i) + "." + name + ".weight"); };
    const auto wq = w("attn_q"), wk = w("attn_k"), wv = w("attn_v"), wo = w("attn_output");
    const auto q_norm = w("attn_q_norm"), k_norm = w("attn_k_norm"), attn_norm = w("attn_norm");
    std::vector<std::vector<Vec>> keys, values, queries;
    const auto see = [&](const Vec& row) {
      const int pos = static_cast<int>(keys.size());
      keys.push_back(heads(times(wk, row), shape.head_dim, &k_norm, pos));
      values.push_back(heads(times(wv, row), shape.head_dim, nullptr, pos));
    };
    for (const Vec& c : context) see(c);
    for (const Vec& row : x) {
      const Vec n = rms(row, attn_norm);
      queries.push_back(heads(times(wq, n), shape.head_dim, &q_norm, static_cast<int>(keys.size())));
      see(n);
    }
    const bool is_last = i + 1 == shape.n_layers;
    for (size_t r = 0; r < x.size(); ++r) {
      const size_t pos = context.size() + r;
      const auto window = static_cast<size_t>(is_last ? shape.window : 0);
      const size_t first = window > 0 && pos + 1 > window ? pos + 1 - window : 0;
      Vec joined;
      for (size_t h = 0; h < shape.n_heads; ++h) {
        const size_t kv = h / (shape.n_heads / shape.n_kv_heads);
        Vec weights, out(shape.head_dim, 0.0);
        double total = 0;
        for (size_t p = first; p < keys.size(); ++p) {
          double score = 0;
          for (size_t k = 0; k < shape.head_dim; ++k) score += queries[r][h][k] * keys[p][kv][k];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(shape.head_dim))));
          total += weights.back();
        }
        for (size_t p = first; p < keys.size(); ++p) {
          for (size_t k = 0; k < shape.head_dim; ++k) out[k] += weights[p - first] / total * values[p][kv][k];
        }
        joined.insert(joined.end(), out.begin(), out.end());
      }
      const Vec added = times(wo, joined);
      for (size_t k = 0; k < added.size(); ++k) x[r][k] += added[k];
    }
    const auto gate = w("ffn_gate"), up = w("ffn_up"), down = w("ffn_down"), ffn_norm = w("ffn_norm");
    for (Vec& row : x) {
      const Vec n = rms(row, ffn_norm), g = times(gate, n);
      Vec h = times(up, n);
      for (size_t k = 0; k < h.size(); ++k) h[k] *= g[k] / (1 + std::exp(-g[k]));
      const Vec added = times(down, h);
      for (size_t k = 0; k < added.size(); ++k) row[k] += added[k];
    }
  }
};

// The residual of the model after a layer, from its own program cut off there.
std::vector<std::vector<float>> residual_after(const gguf::File& file, int layer, std::span<const int32_t> tokens) {
  FileSource source(file);
  auto program = build_program(source);
  EXPECT_TRUE(program);
  program->ops.resize(program->layer_ends[static_cast<size_t>(layer)]);
  program->ops.emplace_back(op::HiddenOut{.x = std::get<op::Embed>(program->ops.front()).out});
  LoadOptions options;
  options.kv = kFloatKv;
  options.max_rows = 512;
  const ExecutablePtr executable = compiled(reference::compile(std::move(*program), options));
  Sequence sequence = new_sequence(*executable);
  std::vector<std::vector<float>> rows;
  const auto width = static_cast<size_t>(executable->program().d_model);
  const std::vector<float> all = step(*executable, {Part(&sequence, tokens)}, RowValues::hidden)[0];
  for (size_t at = 0; at < all.size(); at += width) {
    rows.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at),
                      all.begin() + static_cast<std::ptrdiff_t>(at + width));
  }
  return rows;
}

std::vector<float> run_block(Executable& executable, Sequence& sequence, const std::vector<int32_t>& block) {
  Batch batch;
  batch.draft_blocks = true;
  batch.tokens = block;
  auto slice = sequence.begin_pass(sequence.length(), static_cast<int>(block.size()));
  EXPECT_TRUE(slice);
  batch.slices.push_back(*slice);
  for (int i = 0; i < batch.n_rows(); ++i) batch.logit_rows.push_back(i);
  std::vector<float> logits(block.size() * static_cast<size_t>(executable.program().n_vocab));
  EXPECT_TRUE(executable.run(batch, {.logits = logits.data()}));
  return logits;
}

class Drafters : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    scratch_ = fixture::scratch_folder();
    path_ = fixture::kept(GetParam()) / "model.gguf";
    auto file = gguf::File::open(path_.string());
    ASSERT_TRUE(file);
    model_.emplace(std::move(*file));
    const TensorView* table = model_->find("token_embd.weight");
    shape_ = {table->ne[0], table->ne[1], {1, 2, 4}};
  }
  void TearDown() override { std::filesystem::remove_all(scratch_); }

  std::unique_ptr<Model> load(BackendKind backend) {
    auto drafter = fixture::write_drafter(scratch_, path_, shape_);
    EXPECT_TRUE(drafter) << drafter.error().message;
    LoadOptions options;
    options.exact = true;
    options.kv = kFloatKv;
    options.max_rows = 512;
    options.n_threads = 2;
    options.drafter = *drafter;
    auto model = Model::load(path_.string(), backend, options);
    EXPECT_TRUE(model) << model.error().message;
    return model ? std::move(*model) : nullptr;
  }

  // Blocks behind texts of several lengths, in slices of both classes, one after the other on one sequence: each writes
  // over what the last left behind the end.
  void compare(BackendKind backend, std::span<const int> lengths) {
    const auto model = load(backend);
    ASSERT_TRUE(model);
    auto file = gguf::File::open((scratch_ / "drafter.gguf").string());
    ASSERT_TRUE(file);
    const DrafterOracle oracle{shape_, Weights(*file), Weights(*model_),
                               model_->find("output.weight") ? "output.weight" : "token_embd.weight"};
    const std::vector<int32_t> text =
        script_tokens(1, 0, *std::max_element(lengths.begin(), lengths.end()) + 1, model->n_vocab());
    std::vector<std::vector<std::vector<float>>> taps;
    for (const int32_t layer : shape_.target_layers) taps.push_back(residual_after(*model_, layer - 1, text));
    Sequence sequence = new_sequence(model->executable());
    for (const int length : lengths) {
      SCOPED_TRACE(length);
      const auto from = static_cast<size_t>(sequence.length());
      const auto more = std::span(text).subspan(from, static_cast<size_t>(length) - from);
      feed(model->executable(), sequence, more, {static_cast<int>(more.size())});
      std::vector<Vec> states(static_cast<size_t>(length));
      for (size_t p = 0; p < states.size(); ++p) {
        for (const auto& tap : taps) states[p].insert(states[p].end(), tap[p].begin(), tap[p].end());
      }
      std::vector<int32_t> block(static_cast<size_t>(shape_.block), shape_.mask_token);
      block[0] = text[static_cast<size_t>(length)];
      const std::vector<float> found = run_block(model->executable(), sequence, block);
      const std::vector<Vec> expected = oracle.run(states, block);
      double largest = 0, off = 0;
      for (size_t r = 0; r < expected.size(); ++r) {
        for (size_t i = 0; i < expected[r].size(); ++i) {
          largest = std::max(largest, std::abs(expected[r][i]));
          off = std::max(off, std::abs(expected[r][i] - found[r * expected[r].size() + i]));
        }
      }
      // Floats through the model and some layers more, against doubles behind the same model's reference: as the golden
      // tests allow of whole models.
      EXPECT_LT(off, 1e-3 * std::max(1.0, largest));
      EXPECT_GT(largest, 0.1);
    }
  }

  std::filesystem::path scratch_, path_;
  std::optional<gguf::File> model_;
  fixture::DrafterShape shape_{0, 0, {}};
};

TEST_P(Drafters, GiveTheLogitsOfTheFormula) {
  const int lengths[] = {1, 7, 8, 62, 130};
  compare(BackendKind::reference, lengths);
  compare(BackendKind::cpu, lengths);
}

TEST_P(Drafters, SeeALongTextAndAcrossItsSplits) {
  // 254 and 511: blocks whose rows stand on both sides of where the context is cut into pieces.
  const int lengths[] = {254, 255, 500, 510};
  compare(BackendKind::cpu, lengths);
}

TEST_P(Drafters, HaveLayersWithAWindow) {
  shape_.window = 6;
  const int lengths[] = {2, 9, 70, 254};
  compare(BackendKind::reference, std::span(lengths).first(3));
  compare(BackendKind::cpu, lengths);
}

TEST_P(Drafters, TakeNothingFromTheModel) {
  const auto with = load(BackendKind::cpu);
  LoadOptions options;
  options.exact = true;
  options.kv = kFloatKv;
  options.max_rows = 512;
  options.n_threads = 2;
  auto plain = Model::load(path_.string(), BackendKind::cpu, options);
  ASSERT_TRUE(with && plain);
  const std::vector<int32_t> text = script_tokens(2, 0, 90, with->n_vocab());
  EXPECT_EQ(feed_alone(with->executable(), text, {70, 1, 5}), feed_alone((*plain)->executable(), text, {70, 1, 5}));
  EXPECT_EQ(with->fingerprint(), (*plain)->fingerprint());
  EXPECT_NE(with->cache_key(), (*plain)->cache_key()) << "pages with more layers are other pages";
  EXPECT_EQ(with->executable().prefill_rows(), (*plain)->executable().prefill_rows());
  EXPECT_FALSE(with->has_drafts());
  ASSERT_TRUE(with->draft_blocks());
  EXPECT_EQ(with->draft_blocks()->n_rows, shape_.block);
  for (size_t i = 0; i < with->executable().program().matrices.size(); ++i) {
    const bool is_own = i >= with->executable().program().trunk_matrices().size();
    EXPECT_EQ(with->executable().program().matrices[i].name.starts_with("drafter."), is_own);
  }
}

TEST_P(Drafters, ForSomethingElseAreRefused) {
  const auto message = [&](const std::function<void(gguf::Metadata&)>& change, const char* extra = nullptr) {
    std::deque<std::vector<float>> kept;
    auto writer = fixture::drafter_writer(shape_, kept);
    EXPECT_TRUE(writer);
    change(writer->metadata());
    if (extra) {
      const std::vector<float>& one = kept.emplace_back(1, 1.0f);
      EXPECT_TRUE(writer->add_tensor(extra, DType::F32, {1, 1, 1, 1}, std::as_bytes(std::span(one))));
    }
    const auto bytes = writer->write_memory();
    EXPECT_TRUE(bytes);
    auto file = gguf::File::parse(*bytes, "drafter");
    EXPECT_TRUE(file);
    FileSource drafter(*file), model(*model_);
    auto program = build_program(model);
    EXPECT_TRUE(program);
    auto attached = attach_drafter(std::move(*program), drafter);
    return attached ? std::string() : attached.error().message;
  };
  const auto set = [](const char* key, int64_t value) {
    return [=](gguf::Metadata& m) { m.set_int(key, gguf::ValueType::i32, value); };
  };
  const auto taps = [](std::vector<int64_t> values) {
    return [=](gguf::Metadata& m) { m.set("dflash.target_layers", {gguf::ValueType::i32, true, values}); };
  };
  const auto nothing = [](gguf::Metadata&) {};
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos ? testing::AssertionSuccess() : testing::AssertionFailure() << text;
  };
  EXPECT_EQ(message(nothing), "");
  EXPECT_TRUE(has(message([](gguf::Metadata& m) { m.set_string("general.architecture", "qwen3"); }), "'dflash'"));
  EXPECT_TRUE(has(message(set("dflash.vocab_size", 7)), "another model"));
  EXPECT_TRUE(has(message(set("dflash.block_size", 1)), "block_size"));
  EXPECT_TRUE(has(message(set("dflash.block_size", 17)), "block_size"));
  EXPECT_TRUE(has(message(set("tokenizer.ggml.mask_token_id", -1)), "mask_token_id"));
  EXPECT_TRUE(has(message(set("tokenizer.ggml.mask_token_id", 1 << 30)), "mask_token_id"));
  EXPECT_TRUE(has(message(taps({0, 2, 3})), "target_layers"));
  EXPECT_TRUE(has(message(taps({1, 2, 99})), "target_layers"));
  EXPECT_TRUE(has(message(taps({2, 2, 3})), "ascending"));
  EXPECT_TRUE(has(message(taps({})), "target_layers"));
  EXPECT_TRUE(has(message(taps({1, 2})), "fc.weight"));
  EXPECT_TRUE(has(message(set("dflash.block_count", 3)), "blk.2."));
  EXPECT_TRUE(has(message(set("dflash.attention.head_count_kv", 3)), "head_count_kv"));
  EXPECT_TRUE(has(message(nothing, "markov_w1.weight"), "DSpark"));
  EXPECT_TRUE(has(message(nothing, "selector_hidden.weight"), "DFlash 2"));
  EXPECT_TRUE(has(message(nothing, "d2t"), "vocabulary of its own"));
}

INSTANTIATE_TEST_SUITE_P(Models, Drafters, testing::Values("qwen3_5_moe-B-untied", "qwen3_5-A"), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(DraftersOfOthers, NeedAModelThatWrites) {
  auto file = gguf::File::open((fixture::kept("bert-mean") / "model.gguf").string());
  ASSERT_TRUE(file);
  FileSource source(*file);
  auto program = build_program(source);
  ASSERT_TRUE(program);
  const auto attached = attach_drafter(std::move(*program), source);
  ASSERT_FALSE(attached);
  EXPECT_NE(attached.error().message.find("writes text"), std::string::npos) << attached.error().message;
}

}  // namespace
}  // namespace chimere::models
