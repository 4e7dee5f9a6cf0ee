// card_or_cpu_test.cpp  Where nobody asked for the card, the CPU computes what a card can not, and says why.
#include "models/fixture_for_test.h"

namespace chimere::models {
namespace {

Result<std::unique_ptr<Executable>> full(Program, const LoadOptions&) {
  return Error{Code::exhausted, "the model does not fit on a card; expected at most 1 GiB, found 2 GiB"};
}
Result<std::unique_ptr<Executable>> without_kernels(Program, const LoadOptions&) {
  return Error{Code::unsupported, "unsupported on cuda yet: something"};
}
Result<std::unique_ptr<Executable>> broken(Program, const LoadOptions&) {
  return Error{Code::device, "the card fell off the bus"};
}

TEST(CardOrCpu, TheCpuDoesWhatTheCardCanNot) {
  const std::string path = (fixture::kept("qwen2-A") / "model.gguf").string();
  const auto on_card = Model::load_where_it_fits(path, {}, cpu::compile);
  ASSERT_TRUE(on_card) << on_card.error().message;
  EXPECT_EQ((*on_card)->backend(), BackendKind::cuda);
  EXPECT_EQ((*on_card)->card_problem(), "");
  const auto no_room = Model::load_where_it_fits(path, {}, full);
  ASSERT_TRUE(no_room) << no_room.error().message;
  EXPECT_EQ((*no_room)->backend(), BackendKind::cpu);
  EXPECT_NE((*no_room)->card_problem().find("expected at most 1 GiB, found 2 GiB"), std::string::npos)
      << (*no_room)->card_problem();
  EXPECT_NE((*no_room)->card_problem().find("would help"), std::string::npos) << (*no_room)->card_problem();
  const auto no_kernel = Model::load_where_it_fits(path, {}, without_kernels);
  ASSERT_TRUE(no_kernel) << no_kernel.error().message;
  EXPECT_NE((*no_kernel)->card_problem().find("something"), std::string::npos) << (*no_kernel)->card_problem();
}

TEST(CardOrCpu, WhatIsWrongOtherwiseStaysAnError) {
  const std::string path = (fixture::kept("qwen2-A") / "model.gguf").string();
  const auto refused = Model::load_where_it_fits(path, {}, broken);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::device);
  const auto asked = Model::load(path, BackendKind::cuda, {}, full);
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, Code::exhausted);
  EXPECT_FALSE(Model::load_where_it_fits("/nowhere.gguf", {}, cpu::compile));
}

}  // namespace
}  // namespace chimere::models
