#include "learn.h"

#include <cstdio>
#include <fstream>
#include <sstream>

namespace chimere {
namespace {

Result<std::vector<improve::Example>> read_id_lines(const std::string& path) {
  std::ifstream in(path);
  if (!in) return Error{Code::io, path + ": can not be opened"};
  std::vector<improve::Example> examples;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::istringstream words(line);
    improve::Example e;
    words >> e.answer_from;
    for (int32_t id; words >> id;) e.tokens.push_back(id);
    if (!words.eof()) {
      return Error{Code::invalid_argument, path + ":" + std::to_string(number) + ": expected numbers and nothing else"};
    }
    examples.push_back(std::move(e));
  }
  return Result<std::vector<improve::Example>>{std::move(examples)};
}

}  // namespace

Status learn(models::Model& model, const std::string& examples, const std::string& held_out,
             const improve::TrainOptions& options, const std::string& out) {
  TRY_ASSIGN(const auto learned, read_id_lines(examples));
  TRY_ASSIGN(const improve::TrainReport report, improve::train_adapter(model, learned, options, out));
  std::printf("{\"parameters\": %llu, \"seconds\": %.3f, \"tokens\": %llu, \"loss_before\": %.5f, \"loss_after\": %.5f",
              static_cast<unsigned long long>(report.parameters), report.seconds,
              static_cast<unsigned long long>(report.tokens), report.loss_before, report.loss_after);
  if (!held_out.empty()) {
    TRY_ASSIGN(const auto held, read_id_lines(held_out));
    for (const bool is_after : {false, true}) {
      TRY_ASSIGN(const auto score, improve::score_examples(model, held, is_after ? out : ""));
      std::printf(", \"held_out_%s\": {\"loss\": %.5f, \"token_accuracy\": %.4f, \"exact\": %.4f}",
                  is_after ? "after" : "before", score.loss, score.accuracy, score.exact);
    }
  }
  std::printf(", \"curve\": [");
  for (size_t i = 0; i < report.curve.size(); ++i) {
    std::printf("%s[%d, %.5f, %.4f]", i ? ", " : "", report.curve[i].step, report.curve[i].loss,
                report.curve[i].seconds);
  }
  std::printf("]}\n");
  return Ok{};
}

}  // namespace chimere
