// The CPU's kernels of every instruction set keep the numbers contract.
#include "backend/cpu/cpu_features.h"
#include "exactness.h"

namespace chimere::parity {
namespace {

class InstructionSets : public HybridTest {};

TEST_P(InstructionSets, DecodeSlicesGiveTheBitsOfSingleTokens) {
  const ExecutablePtr e = compile(1);
  ASSERT_TRUE(e);
  for (cpu::Isa isa : cpu::available_isas()) {
    cpu::set_isa_for_testing(isa);
    Sequence straight = new_sequence(*e);
    const std::vector<float> expected = run_in_slices(*e, straight, 0, 21, 1);
    for (int n : {2, 7, 16}) {
      Sequence s = new_sequence(*e);
      EXPECT_TRUE(same_logits(run_in_slices(*e, s, 0, 21, n), expected)) << cpu::name(isa) << ", slices of " << n;
    }
  }
  cpu::set_isa_for_testing(cpu::detect_isa());
}

INSTANTIATE_TEST_SUITE_P(Kv, InstructionSets, testing::ValuesIn(variants()), variant_name);

}  // namespace
}  // namespace chimere::parity
