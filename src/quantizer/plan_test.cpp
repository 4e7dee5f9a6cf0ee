#include "quantizer/plan.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "base/platform/mapped_file.h"
#include "base/scratch_for_test.h"
#include "quantizer/errors.h"
#include "quantizer/files_for_test.h"
#include "quantizer/goal.h"
#include "quantizer/losses.h"
#include "quantizer/report.h"
#include "quantizer/write_model.h"
#include "tensor/dequantize.h"

namespace chimere::quantizer {
namespace {

using fixture::mixed_tensors;

// A file of mixed tensors, open, and its plan.
struct Mixed {
  std::string folder = chimere::fixture::scratch_folder().string();
  std::string path = folder + "/in.gguf";
  std::optional<gguf::File> file;
  Plan plan;

  explicit Mixed(const std::vector<std::string>& rules = {}, std::vector<fixture::Tensor> tensors = mixed_tensors()) {
    fixture::write_tensors(path, tensors);
    auto opened = gguf::File::open(path);
    EXPECT_TRUE(opened);
    file.emplace(std::move(*opened));
    std::vector<Rule> parsed;
    for (const std::string& r : rules) {
      auto rule = parse_rule(r);
      EXPECT_TRUE(rule) << rule.error().message;
      parsed.push_back(*rule);
    }
    auto made = plan_for(*file, parsed);
    EXPECT_TRUE(made);
    plan = std::move(*made);
  }
  const PlanItem& item(std::string_view name) const {
    for (const PlanItem& i : plan.items) {
      if (i.tensor->name == name) return i;
    }
    ADD_FAILURE() << name;
    return plan.items.front();
  }
  DType type(std::string_view name) const { return item(name).choice().type; }
  void measure() {
    auto losses = measure_losses(*file, plan, nullptr, {}, 1, {});
    ASSERT_TRUE(losses) << losses.error().message;
    ASSERT_TRUE(apply_losses(*losses, plan));
  }
};

TEST(TensorPart, IsReadFromTheName) {
  EXPECT_EQ(part_of("blk.12.ffn_down_exps.weight").layer, 12);
  EXPECT_EQ(part_of("blk.12.ffn_down_exps.weight").part, "ffn_down_exps");
  EXPECT_EQ(part_of("token_embd.weight").layer, -1);
  EXPECT_EQ(part_of("blk.x.a.weight").part, "blk.x.a");
  EXPECT_EQ(part_of("blk.99999999999.a").layer, -1);
}

TEST(Plan, KeepsWhatIsNoMatrixAndWhatFillsNoBlock) {
  Mixed m;
  choose_everywhere(m.plan, DType::Q4_K);
  EXPECT_EQ(m.type("token_embd.weight"), DType::Q4_K);
  EXPECT_EQ(m.type("output_norm.weight"), DType::F32);
  EXPECT_EQ(m.type("blk.0.ffn_gate_inp.weight"), DType::F32);
  // Rows of 96 fill blocks of 32, not of 256; a column of one fills none.
  EXPECT_EQ(info(m.type("blk.0.attn_q.weight")).block_elems, 32);
  EXPECT_GE(info(m.type("blk.0.attn_q.weight")).bits_per_weight(), 4.5);
  EXPECT_EQ(info(m.type("blk.1.attn_k.weight")).block_elems, 1);
  EXPECT_DOUBLE_EQ(m.item("blk.0.ffn_down_exps.weight").share, 0.5);
  EXPECT_DOUBLE_EQ(m.item("token_embd.weight").share, 1.0 / 40);
}

// No plan comes to ternary types by itself, and a person who asks for one gets it.
TEST(Plan, ATypeOfTrainedModelsIsWrittenWhenItIsAskedFor) {
  for (const DType type : {DType::TQ1_0, DType::TQ2_0}) {
    Mixed m;
    for (const Choice& c : m.item("token_embd.weight").choices) EXPECT_NE(c.type, type);
    choose_everywhere(m.plan, type);
    choose_everywhere(m.plan, type);  // once more changes nothing
    EXPECT_EQ(m.type("token_embd.weight"), type);
    EXPECT_EQ(m.item("token_embd.weight").choice().bytes, (40 * row_bytes(type, 256) + 31) / 32 * 32);
    EXPECT_GE(info(m.type("blk.0.ssm_out.weight")).bits_per_weight(), 4);
    for (const PlanItem& item : m.plan.items) {
      for (size_t k = 1; k < item.choices.size(); ++k) EXPECT_NE(item.choices[k].type, item.choices[k - 1].type);
    }
  }
}

TEST(Plan, RulesDecideAndTheFirstOneWins) {
  Mixed m({"ffn_.*_exps=Q5_K", "exps=Q2_K", "^output\\.weight$=q8_0"});
  choose_everywhere(m.plan, DType::Q3_K);
  EXPECT_EQ(m.type("blk.0.ffn_down_exps.weight"), DType::Q5_K);
  EXPECT_EQ(m.type("output.weight"), DType::Q8_0);
  EXPECT_EQ(m.type("token_embd.weight"), DType::Q3_K);
  const std::string command = llama_command(m.plan, "in", "out", "");
  EXPECT_NE(command.find("--tensor-type '^blk\\.0\\.ffn_down_exps\\.weight$=Q5_K'"), std::string::npos) << command;
  EXPECT_NE(command.find("--output-tensor-type Q8_0"), std::string::npos) << command;
}

TEST(Plan, RefusesRulesThatMeanNothing) {
  EXPECT_NE(parse_rule("x=Q4_L").error().message.find("Q4_K"), std::string::npos);
  EXPECT_FALSE(parse_rule("no type"));
  EXPECT_FALSE(parse_rule("=Q4_K"));
  EXPECT_FALSE(parse_rule("a(=Q4_K"));
  EXPECT_FALSE(parse_rule(std::string(300, 'a') + "=Q4_K"));
  const auto rules = parse_rules("# comment\n\n a=Q4_K \nb=nope\n", "types.txt");
  ASSERT_FALSE(rules);
  EXPECT_NE(rules.error().message.find("types.txt, line 4"), std::string::npos);
  EXPECT_EQ(parse_rules("# comment\n a=Q4_K \r\n", "x")->size(), 1u);
}

// With so few tensors a step of the smallest is more than half a percent; allocate_test.cpp has larger sets.
void expect_no_upgrade_fits(const Plan& plan, double limit) {
  const auto left = limit - static_cast<double>(plan.tensor_bytes());
  EXPECT_GE(left, 0);
  for (const PlanItem& item : plan.items) {
    for (const Choice& c : item.choices) {
      const bool better = c.loss < item.choice().loss;
      EXPECT_FALSE(better && static_cast<double>(c.bytes) - static_cast<double>(item.choice().bytes) <= left)
          << item.tensor->name << " as " << name(c.type);
    }
  }
}

TEST(Goal, FillsTheSizeAskedForAndNeverMore) {
  std::vector<fixture::Tensor> tensors;
  for (int i = 0; i < 12; ++i) {
    const uint64_t rows = 8 + 3 * static_cast<uint64_t>(i % 5);
    tensors.push_back({"blk." + std::to_string(i) + ".ffn_up.weight",
                       {256, rows, 1, 1},
                       fixture::normal_values(256 * rows, static_cast<uint32_t>(i))});
  }
  Mixed m({}, tensors);
  m.measure();
  uint64_t elems = 0;
  for (const fixture::Tensor& t : tensors) elems += t.values.size();
  for (const double bits : {2.6, 3.5, 4.5, 6.0}) {
    const auto found = reach({.kind = Goal::Kind::bits, .amount = bits}, *m.file, nullptr, {}, m.plan);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_LE(m.plan.bits_per_weight(), bits);
    expect_no_upgrade_fits(m.plan, std::floor(bits * static_cast<double>(elems) / 8));
    // The same by the size of the file, to the byte.
    const auto size = planned_bytes(*m.file, m.plan, nullptr, {});
    ASSERT_TRUE(size);
    const double before = m.plan.loss();
    ASSERT_TRUE(reach({.kind = Goal::Kind::size, .amount = static_cast<double>(*size)}, *m.file, nullptr, {}, m.plan));
    EXPECT_LE(*planned_bytes(*m.file, m.plan, nullptr, {}), *size);
    EXPECT_LE(m.plan.loss(), before * (1 + 1e-12));
  }
  const auto none = reach({.kind = Goal::Kind::bits, .amount = 0.5}, *m.file, nullptr, {}, m.plan);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("smallest"), std::string::npos);
}

TEST(Goal, AFloorKeepsRecurrentOutputsAboveTheRest) {
  Mixed m;
  m.measure();
  ASSERT_TRUE(reach({.kind = Goal::Kind::fastest, .amount = 1e9}, *m.file, nullptr, {}, m.plan));
  EXPECT_GE(info(m.type("blk.0.ssm_out.weight")).bits_per_weight(), 4);
  EXPECT_LT(info(m.type("output.weight")).bits_per_weight(), 4);
}

TEST(Losses, AreReadAsTheyWereWrittenAndDamageIsRefused) {
  Mixed m;
  const auto losses = measure_losses(*m.file, m.plan, nullptr, {}, 1, {});
  ASSERT_TRUE(losses);
  const std::string text = losses_text(*losses);
  const auto back = parse_losses(text, "x");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(losses_text(*back), text);
  EXPECT_TRUE(covers(*back, m.plan));
  EXPECT_FALSE(parse_losses("{}", "x"));
  EXPECT_FALSE(parse_losses(text.substr(0, text.size() / 2), "x"));
  std::string negative = text;
  negative.replace(negative.find("\"slope\":1"), 9, "\"slope\":-1");
  EXPECT_FALSE(parse_losses(negative, "x"));
}

TEST(Errors, OfASampleLieWithinTheirInterval) {
  const std::vector<fixture::Tensor> tensors = {{"a.weight", {256, 2000, 1, 1}, fixture::normal_values(256 * 2000, 9)}};
  Mixed m({}, tensors);
  ThreadPool pool(2);
  const std::vector<DType> types = {DType::Q4_K, DType::Q8_0, DType::F32};
  const auto all = measure_errors(m.file->tensors()[0], types, nullptr, {.max_elems = 256 * 2000}, pool);
  const auto some = measure_errors(m.file->tensors()[0], types, nullptr, {.max_elems = 256 * 100}, pool);
  ASSERT_TRUE(all && some);
  EXPECT_EQ((*all)[0].half_width, 0);
  EXPECT_GT((*some)[0].half_width, 0);
  // Twice a 95 % interval.
  EXPECT_NEAR((*some)[0].relative, (*all)[0].relative, 2 * (*some)[0].half_width);
  EXPECT_GT((*all)[0].relative, 10 * (*all)[1].relative);
  EXPECT_EQ((*all)[2].relative, 0);
}

TEST(WriteModel, WritesThePlanAndGoesOnAfterAStopToTheSameBytes) {
  Mixed m;
  choose_everywhere(m.plan, DType::Q4_K);
  const std::string whole = m.folder + "/whole.gguf", again = m.folder + "/again.gguf";
  const auto always = [](uint64_t, uint64_t) { return true; };
  ASSERT_TRUE(write_model(*m.file, m.plan, nullptr, {}, whole, 2, always));
  const auto file = gguf::File::open(whole);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->size_bytes(), *planned_bytes(*m.file, m.plan, nullptr, {}));
  const TensorView* zeros = file->find("blk.0.ssm_out.weight");
  std::vector<float> row(256, 1.0f);
  dequantize_row(zeros->type, zeros->row(1), row.data(), 256);
  EXPECT_EQ(row, std::vector<float>(256, 0.0f));

  for (const int stop : {1, 3, 6}) {
    int calls = 0;
    const Status stopped =
        write_model(*m.file, m.plan, nullptr, {}, again, 1, [&](uint64_t, uint64_t) { return ++calls < stop; });
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, Code::cancelled);
    EXPECT_FALSE(gguf::File::open(again));
  }
  ASSERT_TRUE(write_model(*m.file, m.plan, nullptr, {}, again, 1, always));
  const auto a = MappedFile::open(whole), b = MappedFile::open(again);
  ASSERT_TRUE(a && b);
  EXPECT_TRUE(std::equal(a->bytes().begin(), a->bytes().end(), b->bytes().begin(), b->bytes().end()));
}

// A file that may not grow is the nearest thing to a full disk that a test can have: write() fails in the middle.
TEST(WriteModel, AFullDiskIsSaidAndTheNextRunGoesOn) {
  Mixed m;
  choose_everywhere(m.plan, DType::Q4_K);
  const std::string whole = m.folder + "/whole.gguf", again = m.folder + "/again.gguf";
  const auto always = [](uint64_t, uint64_t) { return true; };
  ASSERT_TRUE(write_model(*m.file, m.plan, nullptr, {}, whole, 2, always));
  const auto a = MappedFile::open(whole);
  ASSERT_TRUE(a);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);  // the limit's signal, so that the call fails instead
  for (const size_t part : {5, 3, 2}) {
    const rlimit small = {a->bytes().size() / part, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const Status full = write_model(*m.file, m.plan, nullptr, {}, again, 2, always);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, Code::io);
    EXPECT_NE(full.error().message.find("again.gguf.part: cannot write"), std::string::npos) << full.error().message;
    EXPECT_FALSE(MappedFile::open(again));
  }
  std::signal(SIGXFSZ, handler);
  uint64_t first = 0;
  ASSERT_TRUE(write_model(*m.file, m.plan, nullptr, {}, again, 2, [&](uint64_t done, uint64_t) {
    if (first == 0) first = done;
    return true;
  }));
  EXPECT_GT(first, a->bytes().size() / 4);  // what was whole was not written again
  const auto b = MappedFile::open(again);
  ASSERT_TRUE(b);
  EXPECT_TRUE(std::equal(a->bytes().begin(), a->bytes().end(), b->bytes().begin(), b->bytes().end()));
}

TEST(WriteModel, NamesWhatIsNotFinite) {
  for (const float bad : {NAN, INFINITY}) {
    std::vector<fixture::Tensor> tensors = mixed_tensors();
    tensors[4].values[256 * 9 + 17] = bad;
    Mixed m({}, tensors);
    choose_everywhere(m.plan, DType::Q4_K);
    const Status s =
        write_model(*m.file, m.plan, nullptr, {}, m.folder + "/out.gguf", 2, [](uint64_t, uint64_t) { return true; });
    ASSERT_FALSE(s);
    EXPECT_NE(s.error().message.find("ffn_down_exps.weight': row 9, column 17"), std::string::npos)
        << s.error().message;
    EXPECT_FALSE(measure_losses(*m.file, m.plan, nullptr, {}, 1, {}));
  }
}

// A tensor of zeros has no error in any type and nothing that its error could be a share of; a column of one fills no
// block; both go through measuring, planning and writing.
TEST(WriteModel, TensorsOfZerosAndOfOneColumnAreWritten) {
  std::vector<fixture::Tensor> tensors = mixed_tensors();
  std::ranges::fill(tensors[1].values, 0.0f);
  tensors[7].values.assign(16, 0.25f);
  Mixed m({}, tensors);
  m.measure();
  const Goal goal{.kind = Goal::Kind::bits, .amount = 5.0};
  ASSERT_TRUE(reach(goal, *m.file, nullptr, {}, m.plan));
  EXPECT_DOUBLE_EQ(m.item("output.weight").choice().loss, 0.0);
  const std::string out = m.folder + "/out.gguf";
  ASSERT_TRUE(write_model(*m.file, m.plan, nullptr, {}, out, 2, [](uint64_t, uint64_t) { return true; }));
  const auto file = gguf::File::open(out);
  ASSERT_TRUE(file);
  for (const TensorView& tensor : file->tensors()) {
    const auto source = std::ranges::find(tensors, tensor.name, &fixture::Tensor::name);
    std::vector<float> row(tensor.ne[0]);
    for (uint64_t r = 0; r < tensor.rows(); ++r) {
      dequantize_row(tensor.type, tensor.row(r), row.data(), static_cast<int64_t>(row.size()));
      const float* expected = source->values.data() + r * row.size();
      const bool zeros = std::all_of(expected, expected + row.size(), [](float v) { return v == 0.0f; });
      for (size_t i = 0; i < row.size(); ++i) {
        ASSERT_TRUE(std::isfinite(row[i])) << tensor.name;
        if (zeros || row.size() == 1) {
          ASSERT_EQ(row[i], expected[i]) << tensor.name << " row " << r;
        }
      }
    }
  }
}

// Rows that were not seen leave an interval, which the plan and its report say.
TEST(Report, SaysTheIntervalsOfSampledErrors) {
  Mixed m;
  auto sampled = measure_losses(*m.file, m.plan, nullptr, {.max_elems = 1024, .min_rows = 4}, 1, {});
  ASSERT_TRUE(sampled);
  ASSERT_TRUE(apply_losses(*sampled, m.plan));
  choose_everywhere(m.plan, DType::Q4_K);
  EXPECT_GT(m.item("token_embd.weight").choice().half_width, 0);
  EXPECT_LT(m.item("token_embd.weight").choice().half_width, m.item("token_embd.weight").choice().loss);
  EXPECT_GE(m.plan.loss_half_width(), m.item("token_embd.weight").choice().half_width);
  EXPECT_NE(plan_table(m.plan, true).find(" +/- "), std::string::npos);
  Mixed whole;
  whole.measure();
  EXPECT_EQ(plan_table(whole.plan, true).find(" +/- "), std::string::npos);
}

TEST(Report, HasEveryTensorAndTheMethods) {
  Mixed m;
  m.measure();
  const std::vector<Curve> curves = compare_methods(m.plan);
  ASSERT_EQ(curves.size(), 4u);
  for (size_t i = 0; i < curves[0].points.size(); ++i) {
    EXPECT_LE(curves[0].points[i].loss, curves[1].points[i].loss * (1 + 1e-9));
    EXPECT_LE(curves[0].points[i].loss, curves[2].points[i].loss * (1 + 1e-9));
  }
  EXPECT_NE(curves_svg(curves, "loss").find("<path"), std::string::npos);
  EXPECT_NE(bits_svg(m.plan).find("ffn_down_exps"), std::string::npos);
  const std::string text = report_markdown(m.plan, curves, {.in = "a", .out = "b", .asked = "--bpw 4"});
  for (const PlanItem& item : m.plan.items) EXPECT_NE(text.find(item.tensor->name), std::string::npos);
}

}  // namespace
}  // namespace chimere::quantizer
