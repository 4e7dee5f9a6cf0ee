// What is said of a model's speed at its start, and when the CPU is the better place for it.
#include "engine/expectation.h"

#include <gtest/gtest.h>

#include "models/registry.h"
#include "models/synthetic.h"

namespace chimere::engine {
namespace {

Machine measured_machine() {
  Machine m;
  m.host.cores = 4;
  m.ram = {{4, 20e9}};
  m.barrier_s = 1e-6;
  for (const DTypeInfo& t : all_dtypes()) m.products.push_back({t.type, 10e9, 40e9, 1e12, 1e12});
  return m;
}

TEST(Expectation, IsTheForecastWhereAllFiguresAreKept) {
  auto source = models::synthetic_source("llama-tiny");
  ASSERT_TRUE(source) << source.error().message;
  const auto program = models::build_program(**source);
  ASSERT_TRUE(program) << program.error().message;
  LoadOptions options;
  options.context_tokens = 1024;
  Machine machine = measured_machine();
  const auto found = expected(*program, options, false, machine);
  ASSERT_TRUE(found);
  ForecastOptions o;
  o.load = options;
  EXPECT_EQ(found->decode_tok_s, forecast(*program, o, machine)->decode_tok_s);
  EXPECT_NE(expectation_text(*found).find(" tokens a second for one answer"), std::string::npos);
  EXPECT_EQ(expectation_text({}), "") << "an unknown speed is not said";
  // Of fewer threads, another format, a card: not measured.
  options.n_threads = 2;
  EXPECT_FALSE(expected(*program, options, false, machine));
  options.n_threads = 4;
  EXPECT_TRUE(expected(*program, options, false, machine));
  std::erase_if(machine.products, [](const ProductSpeed& p) { return p.type == DType::Q4_K; });
  EXPECT_FALSE(expected(*program, options, false, machine));
  EXPECT_FALSE(expected(*program, options, true, measured_machine()));
}

TEST(Expectation, OfASlowBusIsThatTheCpuComputes) {
  Forecast card, cpu;
  card.memory.n_layers = 32, card.memory.n_layers_in_ram = 20;
  card.decode_tok_s = 4, cpu.decode_tok_s = 9;
  const std::string why = better_on_cpu(card, cpu);
  EXPECT_NE(why.find("20 of 32 layers"), std::string::npos) << why;
  EXPECT_NE(why.find("4.0 tokens a second are expected of the card and 9.0 of the CPU"), std::string::npos) << why;
  cpu.decode_tok_s = 4.5;
  EXPECT_EQ(better_on_cpu(card, cpu), "") << "a little is not worth slow prompts";
  cpu.decode_tok_s = 9;
  card.memory.n_layers_in_ram = 0;
  EXPECT_EQ(better_on_cpu(card, cpu), "") << "nothing comes over the bus";
}

}  // namespace
}  // namespace chimere::engine
