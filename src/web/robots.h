// robots.h  What a site asks programs to leave alone: robots.txt, as RFC 9309 has it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chimere::web {

inline constexpr size_t kMaxRobotsBytes = 512 * 1024;     // the RFC asks for 500 KiB; what is behind it is not read
inline constexpr size_t kMaxRobotsRuleBytes = 64 * 1024;  // of the rules that concern us

class Robots {
 public:
  static Robots allow_all() { return Robots(true); }
  static Robots allow_nothing() { return Robots(false); }
  // The rules for `agent` (a name of letters, compared without case), or where there are none, those for everybody.
  // With more than kMaxRobotsRuleBytes of them nothing is allowed.
  static Robots parse(std::string_view text, std::string_view agent);

  // `target`: path and query. The longest rule that fits decides; "allow" where two are as long, and where none fits.
  bool allows(std::string_view target) const;

  size_t n_rules() const { return rules_.size(); }
  size_t n_bytes() const;

 private:
  explicit Robots(bool by_default) : by_default_(by_default) {}

  struct Rule {
    std::string pattern;  // '*' stands for anything, '$' at the end for the end
    bool allows;
  };
  std::vector<Rule> rules_;
  bool by_default_;
};

}  // namespace chimere::web
