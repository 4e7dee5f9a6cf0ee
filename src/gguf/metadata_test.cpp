#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gguf/gguf.h"

namespace chimere::gguf {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

template <class T>
std::string message(const Result<T>& result) {
  return result ? "" : result.error().message;
}

TEST(Metadata, IntegersOfAnyWidthWithARange) {
  Metadata m;
  m.set_int("u8", ValueType::u8, 200);
  m.set_int("i16", ValueType::i16, -3);
  m.set("huge", {ValueType::u64, false, ~uint64_t{0}});
  m.set_string("text", "7");
  EXPECT_EQ(*m.get_int("u8", 0, 255), 200);
  EXPECT_EQ(*m.get_int("i16", kMin, kMax), -3);
  EXPECT_EQ(message(m.get_int("u8", 1, 100)), "key 'u8': expected an integer in 1..100, found u8 200");
  EXPECT_EQ(message(m.get_int("u8", 201, 255)), "key 'u8': expected an integer in 201..255, found u8 200");
  EXPECT_EQ(message(m.get_int("i16", 0, 9)), "key 'i16': expected an integer in 0..9, found i16 -3");
  EXPECT_EQ(message(m.get_int("huge", kMin, kMax)), "key 'huge': expected an integer, found u64 18446744073709551615");
  EXPECT_EQ(message(m.get_int("u8", -9, -1)), "key 'u8': expected an integer in -9..-1, found u8 200");
  EXPECT_EQ(message(m.get_int("text", 0, 9)), "key 'text': expected an integer in 0..9, found string of 1 bytes");
  EXPECT_EQ(m.get_int("none", 0, 9).error().code, Code::not_found);
  EXPECT_EQ(m.get_int("text", 0, 9).error().code, Code::invalid_argument);
  EXPECT_EQ(*m.get_int_or("none", 0, 9, 5), 5);
  EXPECT_FALSE(m.get_int_or("text", 0, 9, 5));
}

TEST(Metadata, Floats) {
  Metadata m;
  m.set_float("f", 1e-6);
  m.set("d", {ValueType::f64, false, 0.25});
  m.set_int("i", ValueType::i32, -4);
  m.set("nan", {ValueType::f32, false, std::nan("")});
  m.set("inf", {ValueType::f64, false, std::numeric_limits<double>::infinity()});
  EXPECT_EQ(*m.get_float("f"), static_cast<double>(1e-6f));
  EXPECT_EQ(*m.get_float("d"), 0.25);
  EXPECT_EQ(*m.get_float("i"), -4.0);
  EXPECT_EQ(message(m.get_float("nan")), "key 'nan': expected a finite number, found f32 nan");
  EXPECT_EQ(message(m.get_float("inf")), "key 'inf': expected a finite number, found f64 inf");
  EXPECT_EQ(*m.get_float_or("none", 0.5), 0.5);
  EXPECT_FALSE(m.get_float_or("nan", 0.5));

  m.set("fs", {ValueType::f32, true, std::vector<double>{1, 2.5}});
  m.set("bad", {ValueType::f64, true, std::vector<double>{1, 1e300}});
  EXPECT_EQ(*m.get_floats("fs"), (std::vector<float>{1, 2.5f}));
  EXPECT_EQ(message(m.get_floats("bad")), "key 'bad': expected finite floats, found 1e+300 at index 1");
  EXPECT_EQ(message(m.get_floats("f")).find("expected an array of floats"), 9u);
}

TEST(Metadata, Bools) {
  Metadata m;
  m.set_bool("t", true);
  m.set_int("one", ValueType::u8, 1);
  m.set_int("zero", ValueType::i32, 0);
  m.set_int("two", ValueType::u32, 2);
  EXPECT_TRUE(*m.get_bool("t"));
  EXPECT_TRUE(*m.get_bool("one"));
  EXPECT_FALSE(*m.get_bool("zero"));
  EXPECT_EQ(message(m.get_bool("two")), "key 'two': expected a bool or an integer 0 or 1, found u32 2");
  EXPECT_TRUE(*m.get_bool_or("none", true));
  EXPECT_FALSE(m.get_bool_or("two", true));
}

TEST(Metadata, PerLayerTakesAScalarOrAnExactArray) {
  Metadata m;
  m.set_int("scalar", ValueType::u32, 8);
  m.set("array", {ValueType::i32, true, std::vector<int64_t>{0, 2, 0}});
  m.set("flags", {ValueType::boolean, true, std::vector<bool>{true, false, true}});
  EXPECT_EQ(*m.get_int_per_layer("scalar", 3, 0, 9), (std::vector<int64_t>{8, 8, 8}));
  EXPECT_EQ(*m.get_int_per_layer("array", 3, 0, 9), (std::vector<int64_t>{0, 2, 0}));
  EXPECT_EQ(*m.get_int_per_layer("flags", 3, 0, 1), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(message(m.get_int_per_layer("array", 4, 0, 9)),
            "key 'array': expected an integer or an array of 4 integers, found array of 3 i32");
  EXPECT_EQ(message(m.get_int_per_layer("array", 3, 1, 9)),
            "key 'array': expected an integer in 1..9, found 0 at index 0");
  EXPECT_EQ(m.get_int_per_layer("none", 3, 0, 9).error().code, Code::not_found);
  EXPECT_EQ(message(m.get_ints("scalar", 0, 9)), "key 'scalar': expected an array of integers, found u32 8");
}

TEST(Metadata, Strings) {
  Metadata m;
  m.set_string("s", "text");
  m.set("list", {ValueType::string, true, std::vector<std::string>{"a", "b"}});
  EXPECT_EQ(*m.get_string("s"), "text");
  ASSERT_EQ(m.get_strings("list")->size(), 2u);
  EXPECT_EQ((*m.get_strings("list"))[1], "b");
  EXPECT_EQ(message(m.get_string("list")), "key 'list': expected a string, found array of 2 string");
  EXPECT_EQ(message(m.get_strings("s")), "key 's': expected an array of strings, found string of 4 bytes");
}

TEST(Metadata, SetReplacesAndKeepsOrder) {
  Metadata m;
  m.set_int("b", ValueType::u32, 1);
  m.set_int("a", ValueType::u32, 2);
  m.set_string("b", "new");
  ASSERT_EQ(m.entries().size(), 2u);
  EXPECT_EQ(m.entries()[0].first, "b");
  EXPECT_EQ(*m.get_string("b"), "new");
  EXPECT_EQ(*m.get_int("a", 0, 9), 2);
}

}  // namespace
}  // namespace chimere::gguf
