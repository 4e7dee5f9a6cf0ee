// executable.cpp  Runs a program op by op on the oracle.
#include <cstdlib>

#include "backend/host_memory.h"
#include "backend/reference/reference.h"

namespace chimere::reference {
namespace {

class ReferenceExecutable final : public Executable {
 public:
  ReferenceExecutable(Program program, StateLayout layout, const LoadOptions& options)
      : program_(std::move(program)),
        layout_(std::move(layout)),
        max_rows_(options.max_rows > 0 ? options.max_rows : default_max_rows(program_, options.decode_rows)),
        prefill_rows_(chimere::prefill_rows(max_rows_, options.decode_rows)) {
    for (const Buffer& b : program_.buffers) {
      buffers_.emplace_back(static_cast<size_t>(b.width) * max_rows_);
      scratch_bytes_ += buffers_.back().size() * sizeof(float);
    }
    for (const TensorView& m : program_.matrices) weight_bytes_ += m.size_bytes();
  }

  Status run(const Batch& batch, const Outputs& outputs) override {
    const Context context{program_, layout_, batch, buffers_, outputs};
    for (const Op& op : batch.is_draft_pass() ? program_.draft_pass() : program_.trunk()) {
      std::visit([&](const auto& o) { reference::run(context, o); }, op);
    }
    return Ok{};
  }

  Status replay(float* recurrent, const float* recorded, int n_tokens) override {
    const Batch none;
    const Context context{program_, layout_, none, buffers_, {}};
    const ReplayLayout record(layout_);
    for (const Op& any : program_.ops) {
      std::visit(
          [&](const auto& op) {
            if constexpr (requires { op.recurrent_layer; }) {
              const float* first = recorded + record.offset[op.recurrent_layer];
              for (int t = 0; t < n_tokens; ++t) {
                reference::replay(context, op, recurrent, first + t * record.floats_per_token);
              }
            }
          },
          any);
    }
    return Ok{};
  }

  bool has_adapters() const override { return true; }
  const Program& program() const override { return program_; }
  const StateLayout& layout() const override { return layout_; }
  StateMemory& memory() override { return memory_; }
  int max_rows() const override { return max_rows_; }
  int prefill_rows() const override { return prefill_rows_; }
  uint64_t weight_bytes() const override { return weight_bytes_; }
  uint64_t scratch_bytes() const override { return scratch_bytes_; }

 private:
  Program program_;
  StateLayout layout_;
  HostMemory memory_;
  const int max_rows_;
  const int prefill_rows_;
  std::vector<std::vector<float>> buffers_;
  uint64_t weight_bytes_ = 0;
  uint64_t scratch_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<Executable>> compile(Program program, const LoadOptions& options) {
  TRY(refuse_observer(options, "reference"));
  TRY_ASSIGN(StateLayout layout, StateLayout::create(program.kv_layers, program.recurrent_layers, options.kv));
  return Result<std::unique_ptr<Executable>>{
      std::make_unique<ReferenceExecutable>(std::move(program), std::move(layout), options)};
}

}  // namespace chimere::reference
