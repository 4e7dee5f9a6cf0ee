// fuzz_routes.cpp  libFuzzer target of routes: a file of one, and a question behind it, told apart by a byte 0.
//
// A file is refused with its name and a place, or makes a router that finds a route for any question.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "odo/routing/router.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace chimere::odo;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t end = all.find('\0');
  const std::string_view question = end == all.npos ? std::string_view() : all.substr(end + 1);
  auto route = parse_route_rules(all.substr(0, end), "fuzz.yaml");
  if (!route) {
    CHECK(route.error().message.starts_with("fuzz.yaml:"));
    return 0;
  }
  RouteRules other;
  other.words = {"hello"};
  other.examples = {"What is the weather like?"};
  const auto router = Router::create({std::move(*route), {"default", other}});
  if (!router) return 0;  // the name was "default"
  const RouteChoice choice = (*router)->choose(question, {{std::string(question), std::string(question)}}, {});
  CHECK(!choice.route.empty() && choice.confidence >= 0 && choice.confidence <= 1);
  return 0;
}
