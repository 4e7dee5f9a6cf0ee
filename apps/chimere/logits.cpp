// logits.cpp  chimere logits: token ids in, float32 logits of every position out. For comparing engines.
#include <fstream>

#include "commands.h"
#include "common.h"
#include "engine/score.h"

namespace chimere::apps {
namespace {

struct LogitsOptions {
  ModelOptions model;
  std::string ids_file;
  std::string out;
  int step = 0;
};

Status run(const LogitsOptions& o) {
  TRY_ASSIGN(auto model, load_model(o.model));
  TRY_ASSIGN(const std::vector<int32_t> ids, engine::read_ids(o.ids_file, model->n_vocab()));
  if (o.step < 0 || o.step > static_cast<int>(ids.size())) {
    return Error{Code::invalid_argument,
                 "--step: expected 0 to " + std::to_string(ids.size()) + ", found " + std::to_string(o.step)};
  }
  std::ofstream out(o.out, std::ios::binary);
  if (!out) return Error{Code::io, o.out + ": can not be written"};
  TRY(engine::all_logits(*model, ids, o.step, [&](std::span<const float> row) {
    out.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size_bytes()));
  }));
  out.close();
  if (!out) return Error{Code::io, o.out + ": writing failed"};
  return Ok{};
}

}  // namespace

void add_logits(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<LogitsOptions>();
  CLI::App* command = app.add_subcommand("logits", "Write the logits of every position of given token ids");
  add_model_options(*command, options->model, false);
  command->add_option("--ids-file", options->ids_file, "little-endian int32 token ids")->required();
  command->add_option("--out", options->out, "float32 logits [n, vocab] are written here")->required();
  command->add_option("--step", options->step, "decode the last N tokens one by one after a prefill of the rest");
  command->callback([options, &outcome] {
    if (Status s = run(*options); !s) outcome.code = fail(s.error());
  });
}

}  // namespace chimere::apps
