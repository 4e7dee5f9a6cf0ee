// fuzz_robots.cpp  libFuzzer target: the first line is a path, the rest a robots.txt.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "web/robots.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace chimere::web;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(all.find('\n'), all.size());
  const std::string target = "/" + std::string(all.substr(0, end));
  const std::string_view text = all.substr(std::min(end + 1, all.size()));
  const Robots robots = Robots::parse(text, "chimere");
  CHECK(robots.n_bytes() <= kMaxRobotsRuleBytes);
  robots.allows(target);
  CHECK(robots.allows("/robots.txt"));
  // A last rule for us that is longer than any other decides.
  const std::string path = "/" + std::string(3 * size + 1, 'p');
  const std::string named = std::string(text) + "\n\nuser-agent: chimere\nallow: /q\ndisallow: " + path + "\n";
  CHECK(!Robots::parse(named, "chimere").allows(path));
  return 0;
}
