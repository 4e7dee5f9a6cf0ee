// Going back from drafts on the CUDA backend, in the emulator: every architecture with a recurrent state. Across the end
// of a page; with CHIMERE_EVERY_POSITION in the environment at every position across two of them, as
// models/rollback_test.cpp does on the CPU, and with CHIMERE_SHARED in its models, too.
#include <gtest/gtest.h>

#include <cstdlib>

#include "models/fixture_for_test.h"
#include "models/rollback_for_test.h"
#include "models/tiny_recurrent_for_test.h"
#include "parity/backend_under_test.h"

namespace chimere {
namespace {

bool at_every_position() { return std::getenv("CHIMERE_EVERY_POSITION") != nullptr; }

// Those that are made, and those that the repository keeps.
std::vector<std::string> models_of_this_run() {
  std::vector<std::string> all = fixture::recurrent_models();
  std::erase_if(all, [](const std::string& model) {
    const fixture::fs::path folder(model);
    return !at_every_position() && folder.is_absolute() && folder.parent_path() != fixture::kept_root();
  });
  return all;
}

class CudaRollback : public testing::TestWithParam<std::string> {};

TEST_P(CudaRollback, LeavesNoTrace) {
  LoadOptions options;
  options.kv = kHalfKv;
  options.max_rows = 80;
  const auto folder = fixture::recurrent_folder(GetParam());
  auto model = models::Model::load((folder / "model.gguf").string(), models::BackendKind::cuda, options, cuda::compile);
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_GT((*model)->executable().layout().recurrent_floats(), 0);
  if (at_every_position()) {
    expect_no_trace_of_drafts(**model, 5, 140);
  } else {
    expect_no_trace_of_drafts(**model, 61, 62);  // seven of fourteen stay
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CudaRollback, testing::ValuesIn(models_of_this_run()), fixture::recurrent_name);

}  // namespace
}  // namespace chimere
