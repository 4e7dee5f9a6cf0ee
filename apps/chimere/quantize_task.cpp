#include "quantize_task.h"

#include <strings.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

namespace chimere::apps {
namespace {

namespace fs = std::filesystem;
namespace qz = quantizer;

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

Status check_paths(const QuantizeOptions& o) {
  if (o.dry_run || o.export_llama) return Ok{};
  if (o.out.empty()) return Error{Code::invalid_argument, "expected a file to write, or --dry-run"};
  std::error_code code;
  if (fs::equivalent(o.in, o.out, code))
    return Error{Code::invalid_argument, o.out + " is the file to read: give another one to write"};
  if (fs::exists(o.out, code) && !o.force) return Error{Code::invalid_argument, o.out + " exists; --force replaces it"};
  return Ok{};
}

}  // namespace

Result<QuantizeTask> read_task(const QuantizeOptions& o) {
  TRY(check_paths(o));
  QuantizeTask task;
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
  return Result<QuantizeTask>{std::move(task)};
}

}  // namespace chimere::apps
