// quantize.cpp  chimere quantize: a model in fewer bits, of the size that was asked for.
#include <cstdio>
#include <filesystem>

#include "base/platform/atomic_file.h"
#include "commands.h"
#include "common.h"
#include "convert/convert.h"
#include "progress_bar.h"
#include "quantize_measured.h"
#include "quantize_task.h"
#include "quantizer/report.h"
#include "quantizer/write_model.h"

namespace chimere::apps {
namespace {

namespace fs = std::filesystem;
namespace qz = quantizer;

// A checkpoint becomes a file beside the one to write: plans read tensors in any order, and measuring runs the model.
Status make_source(QuantizeOptions& o) {
  fs::path folder = fs::path(o.in).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  o.folder = folder.string();
  convert::ConvertOptions wanted;
  wanted.folder = o.folder;
  wanted.out = (o.out.empty() ? o.folder : o.out) + ".source";
  wanted.type.reset();
  wanted.named_by_content = true;
  std::fprintf(stderr, "%s: a checkpoint, converted first\n", o.folder.c_str());
  ProgressBar bar;
  TRY_ASSIGN(const convert::ConvertReport made,
             convert::convert(wanted, [&](uint64_t done, uint64_t total) { return bar(done, total); }));
  for (const std::string& note : made.notes) std::fprintf(stderr, "  note: %s\n", note.c_str());
  o.in = made.file;
  return Ok{};
}

Status write_text(const std::string& path, const std::string& text) {
  TRY_ASSIGN(AtomicFile file, AtomicFile::create(path));
  TRY(file.write(std::as_bytes(std::span(text.data(), text.size()))));
  return file.commit();
}

Status write_report(const QuantizeOptions& o, const qz::Plan& plan, qz::ReportFacts facts) {
  std::vector<qz::Curve> curves;
  const fs::path base = fs::path(o.report).replace_extension();
  if (facts.losses) {
    curves = qz::compare_methods(plan);
    const std::string svg =
        qz::curves_svg(curves, facts.losses->probed ? "predicted mean KL divergence" : "sum of relative errors");
    facts.curves_file = base.filename().string() + "-curves.svg";
    TRY(write_text(base.string() + "-curves.svg", svg));
  }
  if (const std::string svg = qz::bits_svg(plan); !svg.empty()) {
    facts.bits_file = base.filename().string() + "-bits.svg";
    TRY(write_text(base.string() + "-bits.svg", svg));
  }
  return write_text(o.report, qz::report_markdown(plan, curves, facts));
}

Status quantize(const QuantizeOptions& o, QuantizeTask& task) {
  const qz::Goal& goal = task.goal;
  qz::Origin& origin = task.origin;
  TRY_ASSIGN(const gguf::File file, gguf::File::open(o.in));
  TRY_ASSIGN(qz::Plan plan, qz::plan_for(file, task.rules));
  QuantizeMeasured m;
  TRY(gather(o, file, m));
  if (m.statistics)
    origin.statistics_file = o.imatrix.empty() ? "text of the model's own" : fs::path(o.imatrix).filename().string();
  if (goal.kind != qz::Goal::Kind::type) {
    TRY(measure(o, file, plan, m));
    TRY(qz::apply_losses(*m.losses, plan));
  }
  TRY_ASSIGN(const qz::Allocation allocation, qz::reach(goal, file, m.weights(), origin, plan));
  if (m.losses && m.losses->probed) origin.predicted_loss = plan.loss();
  TRY_ASSIGN(const uint64_t planned, qz::planned_bytes(file, plan, m.weights(), origin));
  if (o.export_llama) {
    const std::string source = o.folder.empty() ? o.in : o.folder + ".gguf";  // as `chimere convert` would name it
    std::printf("%s\n", qz::llama_command(plan, source, o.out.empty() ? "OUT.gguf" : o.out, o.imatrix).c_str());
    return Ok{};
  }
  qz::ReportFacts facts{fs::path(o.folder.empty() ? o.in : o.folder).filename().string(),
                        fs::path(o.out).filename().string(),
                        origin.how,
                        planned,
                        m.losses ? &*m.losses : nullptr,
                        m.losses ? &allocation : nullptr,
                        {},
                        "",
                        ""};
  if (o.dry_run) {
    std::printf("%sfile: %llu bytes\n", qz::plan_table(plan, m.losses.has_value()).c_str(),
                static_cast<unsigned long long>(planned));
    return o.report.empty() ? Status(Ok{}) : write_report(o, plan, std::move(facts));
  }
  ProgressBar bar;
  TRY(qz::write_model(file, plan, m.weights(), origin, o.out, o.threads,
                      [&](uint64_t done, uint64_t total) { return bar(done, total); }));
  std::printf("%s: %.3f MB, %.3f bits a weight, %.3f MB read for a token\n", o.out.c_str(),
              static_cast<double>(planned) / 1e6, plan.bits_per_weight(), plan.read_bytes() / 1e6);
  if (m.losses) {
    std::printf(m.losses->probed ? "  predicted mean KL divergence %.5f\n" : "  sum of relative errors %.5f\n",
                plan.loss());
  }
  if (m.held_out) {
    TRY_ASSIGN(const qz::Divergence d, judge(o, m));
    std::printf(
        "  measured on %zu tokens of %s: mean KL divergence %.5f +/- %.5f, same best token %.2f %%, perplexity x "
        "%.4f\n",
        d.n_tokens, m.text_name.c_str(), d.mean, d.mean_error, 100 * d.same_top, d.ratio);
    facts.measured = d;
  }
  return o.report.empty() ? Status(Ok{}) : write_report(o, plan, std::move(facts));
}

Status run(QuantizeOptions& o) {
  TRY_ASSIGN(QuantizeTask task, read_task(o));
  std::error_code code;
  if (!fs::is_directory(o.in, code)) return quantize(o, task);
  TRY(make_source(o));
  Status done = quantize(o, task);
  if (done) {
    fs::remove(o.in, code);
  } else {
    std::fprintf(stderr, "%s stays, for the same command to go on with\n", o.in.c_str());
  }
  return done;
}

}  // namespace

void add_quantize(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<QuantizeOptions>();
  CLI::App* command = app.add_subcommand("quantize", "Make a model smaller: a GGUF file in fewer bits");
  command->footer(
      "Ask for a size, and every tensor gets the type that costs the answers least:\n\n"
      "  chimere imatrix big.gguf --text some.txt -o big.imatrix          what matters in it; once\n"
      "  chimere quantize big.gguf small.gguf --size 15.2GB --imatrix big.imatrix --text some.txt\n"
      "  chimere quantize big.gguf small.gguf --bpw 3.5 --data-free       without any text\n"
      "  chimere quantize big.gguf small.gguf --fits 16GiB --ctx 65536 --imatrix big.imatrix --text some.txt\n"
      "  chimere quantize big.gguf small.gguf --type Q4_K                 one type, no questions\n"
      "  chimere quantize Qwen3-0.6B small.gguf --bpw 4.5 --data-free     from a folder of Hugging Face\n\n"
      "With --text the model is measured with parts of it quantised, so that the plan's loss is a predicted KL "
      "divergence;\n"
      "what was measured is kept in IN.losses.json and serves every other size. --dry-run shows the plan.\n"
      "Norms, routers and vectors stay as they are, recurrent gates keep 8 bits or more. When a run is interrupted, "
      "the same\n"
      "command goes on where it stopped. docs/quantize.md says more.");
  command
      ->add_option(
          "in", options->in,
          "GGUF file to read (the first one of a split set), best in BF16, F16 or F32; or the folder of a checkpoint")
      ->required();
  command->add_option("out", options->out, "GGUF file to write");
  command->add_option("--type", options->type, "one type for every matrix, e.g. Q4_K");
  command->add_option("--size", options->size, "the file's size, e.g. 15.2GB or 14GiB; never more");
  command->add_option("--bpw", options->bits, "bits a weight over all tensors, e.g. 3.78; never more")->check(above(0));
  command->add_option("--fits", options->fits,
                      "memory for weights and the caches of one sequence of --ctx tokens, e.g. 16GiB");
  command->add_option("--ctx", options->context, "tokens of --fits")->check(at_least(1))->capture_default_str();
  command->add_option("--reserve", options->reserve, "of --fits, what is left to the driver and the kernels")
      ->capture_default_str();
  command
      ->add_option("--fastest-within", options->fastest,
                   "the fewest bytes read a token within this mean KL divergence, e.g. 0.02")
      ->check(above(0));
  command
      ->add_option("--read-price", options->read_price, "what a gigabyte less, read for each token, is worth in loss")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--imatrix", options->imatrix, "statistics of `chimere imatrix` or of llama.cpp");
  command->add_option("--text", options->texts, "UTF-8 text to measure losses on");
  command->add_flag("--data-free", options->data_free, "measure on text that the model writes by itself");
  command->add_option("--probes", options->probes, "the most measurements with part of the model quantised")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_option("--probe-windows", options->probe_windows, "windows of text in each of them")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--losses", options->losses, "file of what was measured; IN.losses.json when absent");
  command->add_option("--keep", options->keep, "REGEX=TYPE: tensors whose name has it get that type; first match wins");
  command->add_option("--types", options->types_file,
                      "file of such lines; without a goal other tensors stay as they are");
  command->add_flag("--dry-run", options->dry_run, "show the plan and write nothing");
  command->add_flag("--export-llama", options->export_llama,
                    "print the plan as a command line of llama.cpp's quantiser");
  command->add_option("--report", options->report, "Markdown file to write, with plots beside it");
  command->add_option("-t,--threads", options->threads, "threads to compute with; 0: one per core")
      ->capture_default_str();
  command->add_flag("--force", options->force, "replace an existing file");
  command->callback([options, &outcome] {
    if (Status s = run(*options); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
