// quantize.cpp  chimere quantize: a model in fewer bits, of the size that was asked for.
#include <strings.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/platform/atomic_file.h"
#include "commands.h"
#include "common.h"
#include "convert/convert.h"
#include "progress_bar.h"
#include "quantizer/collect.h"
#include "quantizer/goal.h"
#include "quantizer/losses.h"
#include "quantizer/report.h"
#include "quantizer/write_model.h"
#include "text_windows.h"

namespace chimere::apps {
namespace {

namespace fs = std::filesystem;
namespace qz = quantizer;

struct QuantizeOptions {
  std::string in, out;
  std::string folder;  // of a checkpoint, where that was given; `in` is then what was made of it
  std::string type, size, fits;
  double bits = 0, fastest = 0, read_price = 0;
  int context = 8192;
  std::string reserve = "256MiB";
  std::vector<std::string> keep, texts;
  std::string types_file, imatrix, losses, report;
  bool data_free = false, dry_run = false, export_llama = false, force = false;
  int probe_windows = 4, probe_context = 512;
  size_t probes = 96;
  int threads = 0;
};

// "15.2GB" is decimal, "14GiB" binary.
Result<double> bytes_from(const char* option, const std::string& text) {
  char unit[8] = "";
  double amount = 0;
  int end = 0;
  const int n = std::sscanf(text.c_str(), "%lf%7[A-Za-z]%n", &amount, unit, &end);
  const bool whole = n == 1 || (n == 2 && static_cast<size_t>(end) == text.size());
  if (n == 1) std::sscanf(text.c_str(), "%lf%n", &amount, &end);
  const std::pair<const char*, double> units[] = {{"", 1},         {"B", 1},       {"KB", 1e3},     {"MB", 1e6},
                                                  {"GB", 1e9},     {"TB", 1e12},   {"KiB", 0x1p10}, {"MiB", 0x1p20},
                                                  {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  for (const auto& [name, factor] : units) {
    const bool found = whole && static_cast<size_t>(end) == text.size() && strcasecmp(unit, name) == 0;
    if (found && amount > 0 && std::isfinite(amount)) return std::floor(amount * factor);
  }
  return Error{Code::invalid_argument,
               std::string(option) + ": expected a size as in 15.2GB or 14GiB, found '" + text + "'"};
}

Result<qz::Goal> goal_from(const QuantizeOptions& o, std::string& asked) {
  qz::Goal goal;
  int given = 0;
  const auto take = [&](qz::Goal::Kind kind, const std::string& words) {
    goal.kind = kind;
    asked = words;
    ++given;
  };
  char number[32];
  if (!o.type.empty()) {
    TRY_ASSIGN(goal.type, qz::writable_type(o.type));
    take(qz::Goal::Kind::type, "--type " + std::string(name(goal.type)));
  }
  if (!o.size.empty()) {
    TRY_ASSIGN(goal.amount, bytes_from("--size", o.size));
    take(qz::Goal::Kind::size, "--size " + o.size);
  }
  if (o.bits > 0) {
    goal.amount = o.bits;
    std::snprintf(number, sizeof(number), "--bpw %g", o.bits);
    take(qz::Goal::Kind::bits, number);
  }
  if (!o.fits.empty()) {
    TRY_ASSIGN(goal.amount, bytes_from("--fits", o.fits));
    TRY_ASSIGN(const double reserve, bytes_from("--reserve", o.reserve));
    goal.reserve_bytes = static_cast<uint64_t>(reserve);
    goal.context = o.context;
    take(qz::Goal::Kind::fits, "--fits " + o.fits + " --ctx " + std::to_string(o.context));
  }
  if (o.fastest > 0) {
    goal.amount = o.fastest;
    std::snprintf(number, sizeof(number), "--fastest-within %g", o.fastest);
    take(qz::Goal::Kind::fastest, number);
  }
  goal.read_price = o.read_price;
  if (given == 0 && !o.types_file.empty()) {  // what no rule names stays as it is
    goal.type = DType::F32;
    take(qz::Goal::Kind::type, "--types");
  }
  if (given == 1) return Result<qz::Goal>{std::move(goal)};
  return Error{Code::invalid_argument, "expected one goal: --type, --size, --bpw, --fits or --fastest-within"};
}

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

Status check_paths(const QuantizeOptions& o) {
  if (o.dry_run || o.export_llama) return Ok{};
  if (o.out.empty()) return Error{Code::invalid_argument, "expected a file to write, or --dry-run"};
  std::error_code code;
  if (fs::equivalent(o.in, o.out, code))
    return Error{Code::invalid_argument, o.out + " is the file to read: give another one to write"};
  if (fs::exists(o.out, code) && !o.force) return Error{Code::invalid_argument, o.out + " exists; --force replaces it"};
  return Ok{};
}

// One line on a terminal, written over.
void show_step(const char* what, size_t done, size_t total) {
  if (!isatty(STDERR_FILENO)) return;
  std::fprintf(stderr, "\r%s: %zu of %zu%s", what, done, total, done == total ? "\n" : "");
}

LoadOptions probe_load(const QuantizeOptions& o) {
  LoadOptions load;
  load.exact = true;  // what is measured is the weights, not the activations
  load.n_threads = o.threads;
  return load;
}

// What plans are made from: statistics, a text, and what was measured on them.
struct Measured {
  std::optional<qz::Statistics> statistics;
  std::optional<qz::Windows> probe_text, held_out;
  std::optional<qz::Losses> losses;
  std::string text_name = "no text";
  const qz::Statistics* weights() const { return statistics ? &*statistics : nullptr; }
};

// Text that the model says by itself, and what its matrices were multiplied with meanwhile.
Status say_own_text(const QuantizeOptions& o, Measured& m) {
  qz::InputCollector collector;
  LoadOptions load = probe_load(o);
  load.observe = collector.observer();
  TRY_ASSIGN(const auto model, models::Model::load(o.in, models::BackendKind::cpu, std::move(load)));
  TRY_ASSIGN(const Tokenizer tokenizer, Tokenizer::from_metadata(model->metadata()));
  const int32_t first = std::max({tokenizer.special_ids().bos, tokenizer.special_ids().eos, 0});
  std::fprintf(stderr, "the model writes %d windows of text to be measured on\n", 2 * o.probe_windows);
  TRY_ASSIGN(qz::Windows all,
             qz::own_text(*model, o.probe_context, 2 * static_cast<size_t>(o.probe_windows), first, 1));
  const size_t half = all.tokens.size() / 2;
  m.held_out = qz::Windows{all.context, {all.tokens.begin() + static_cast<std::ptrdiff_t>(half), all.tokens.end()}};
  all.tokens.resize(half);
  m.probe_text = std::move(all);
  m.text_name = "text of its own";
  if (m.statistics) return Ok{};
  collector.statistics.datasets = {"text of the model's own"};
  collector.statistics.n_chunks = 2 * static_cast<uint64_t>(o.probe_windows);
  collector.statistics.chunk_tokens = static_cast<uint64_t>(o.probe_context);
  m.statistics = std::move(collector.statistics);
  return Ok{};
}

Status read_texts(const QuantizeOptions& o, const gguf::File& file, Measured& m) {
  TRY_ASSIGN(const Tokenizer tokenizer, Tokenizer::from_metadata(file.metadata()));
  const auto wanted = static_cast<size_t>(o.probe_windows);
  TRY_ASSIGN(qz::Windows all, read_windows(o.texts, tokenizer, o.probe_context, 5 * wanted));
  const size_t n = std::min(wanted, all.n_windows()), cut = n * static_cast<size_t>(o.probe_context);
  // What was measured on and what is judged by are different pages, where there are enough.
  if (all.n_windows() > n) {
    m.held_out = qz::Windows{all.context, {all.tokens.begin() + static_cast<std::ptrdiff_t>(cut), all.tokens.end()}};
    all.tokens.resize(cut);
  } else {
    m.held_out = all;
  }
  m.probe_text = std::move(all);
  m.text_name = fs::path(o.texts.front()).filename().string() + (o.texts.size() > 1 ? " and others" : "");
  return Ok{};
}

Status measure(const QuantizeOptions& o, const gguf::File& file, const qz::Plan& plan, Measured& m) {
  const std::string path = o.losses.empty() ? (o.folder.empty() ? o.in : o.folder) + ".losses.json" : o.losses;
  std::error_code code;
  if (fs::exists(path, code)) {
    auto before = qz::read_losses(path);
    if (!before) return before.error();
    const bool same = before->model == models::fingerprint(file) && before->statistics == qz::hash_of(m.weights());
    const bool enough = before->probed || !m.probe_text;
    if (same && enough && qz::covers(*before, plan)) {
      std::fprintf(stderr, "%s: measured before, on %s\n", path.c_str(), before->text.c_str());
      m.losses = std::move(*before);
      return Ok{};
    }
  }
  TRY_ASSIGN(qz::Losses losses,
             qz::measure_losses(file, plan, m.weights(), {}, o.threads,
                                [](size_t done, size_t total) { show_step("errors of tensors", done, total); }));
  losses.text = m.text_name;
  if (m.probe_text) {
    TRY(qz::measure_slopes(
        file, plan, m.weights(), *m.probe_text, o.probes, probe_load(o),
        [](size_t done, size_t total) { show_step("probes", done, total); }, losses));
  } else {
    std::fprintf(stderr, "without --text or --data-free, losses are sums of relative errors, not divergences\n");
  }
  if (Status s = qz::write_losses(losses, path); !s) {
    std::fprintf(stderr, "what was measured is not kept: %s\n", s.error().message.c_str());
  }
  m.losses = std::move(losses);
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

Result<qz::Divergence> judge(const QuantizeOptions& o, const Measured& m) {
  TRY_ASSIGN(const auto base_model, models::Model::load(o.in, models::BackendKind::cpu, probe_load(o)));
  TRY_ASSIGN(const qz::Base base, qz::measure_base(*base_model, *m.held_out));
  TRY_ASSIGN(const auto model, models::Model::load(o.out, models::BackendKind::cpu, probe_load(o)));
  return qz::measure_divergence(*model, base, {});
}

struct Task {
  qz::Goal goal;
  qz::Origin origin;
  std::vector<qz::Rule> rules;
};

// What can be refused by looking at the options alone, before any work is done.
Result<Task> read_task(const QuantizeOptions& o) {
  TRY(check_paths(o));
  Task task;
  TRY_ASSIGN(task.goal, goal_from(o, task.origin.how));
  for (const std::string& text : o.keep) {
    auto rule = qz::parse_rule(text);
    if (!rule) return Error{rule.error().code, "--keep: " + rule.error().message};
    task.rules.push_back(std::move(*rule));
  }
  if (!o.types_file.empty()) {
    TRY_ASSIGN(std::vector<qz::Rule> more, qz::read_rules(o.types_file));
    for (qz::Rule& rule : more) task.rules.push_back(std::move(rule));
  }
  if (o.data_free && !o.texts.empty())
    return Error{Code::invalid_argument, "--data-free and --text exclude each other"};
  if (task.goal.kind == qz::Goal::Kind::fastest && o.texts.empty() && !o.data_free) {
    return Error{Code::invalid_argument, "--fastest-within: expected --text or --data-free to measure a divergence on"};
  }
  return Result<Task>{std::move(task)};
}

Status quantize(const QuantizeOptions& o, Task& task) {
  const qz::Goal& goal = task.goal;
  qz::Origin& origin = task.origin;
  TRY_ASSIGN(const gguf::File file, gguf::File::open(o.in));
  TRY_ASSIGN(qz::Plan plan, qz::plan_for(file, task.rules));
  Measured m;
  if (!o.imatrix.empty()) {
    TRY_ASSIGN(m.statistics, qz::read_statistics(o.imatrix));
    if (Status s = qz::check_statistics(*m.statistics, file.tensors()); !s) {
      return Error{s.error().code, o.imatrix + ": " + s.error().message};
    }
  }
  if (o.data_free) TRY(say_own_text(o, m));
  if (!o.texts.empty()) TRY(read_texts(o, file, m));
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
  TRY_ASSIGN(Task task, read_task(o));
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
