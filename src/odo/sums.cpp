#include "odo/sums.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "odo/sum_lexer.h"

namespace chimere::odo {
namespace {

using Kind = SumToken::Kind;

constexpr int kMaxDepth = 32;  // parentheses and roots inside each other

// Words of a French question, in which 12,5 is twelve and a half.
constexpr auto kFrench = std::to_array<std::string_view>(
    {"combien", "calcule", "calculer", "calculez", "fois",      "moins",     "quel",     "quelle",
     "que",     "vaut",    "produit",  "somme",    "divisé",    "multiplié", "résultat", "font",
     "fait",    "et",      "est",      "divise",   "multiplie", "puissance"});
// What asks for the value of what follows.
constexpr auto kLeads = std::to_array<std::string_view>({"what is",
                                                         "what's",
                                                         "whats",
                                                         "what are",
                                                         "what does",
                                                         "what do",
                                                         "how much is",
                                                         "how much are",
                                                         "how much does",
                                                         "how much do",
                                                         "how many is",
                                                         "how many are",
                                                         "calculate",
                                                         "compute",
                                                         "evaluate",
                                                         "work out",
                                                         "solve",
                                                         "simplify",
                                                         "find",
                                                         "tell me",
                                                         "give me",
                                                         "result of",
                                                         "value of",
                                                         "answer to",
                                                         "do you get for",
                                                         "combien font",
                                                         "combien fait",
                                                         "combien vaut",
                                                         "combien valent",
                                                         "combien ça fait",
                                                         "combien est-ce que font",
                                                         "combien est-ce que fait",
                                                         "ça fait combien",
                                                         "c'est combien",
                                                         "que fait",
                                                         "que font",
                                                         "que vaut",
                                                         "que valent",
                                                         "calcule",
                                                         "calculer",
                                                         "calculez",
                                                         "calcule-moi",
                                                         "évalue",
                                                         "évaluer",
                                                         "résous",
                                                         "effectue",
                                                         "effectuer",
                                                         "quel est",
                                                         "quelle est",
                                                         "donne-moi"});
// May stand between that and the sum.
constexpr auto kFillers = std::to_array<std::string_view>(
    {"the",     "result",    "value",        "answer", "of",         "to",          "for",
     "exactly", "following", "expression",   "sum",    "exact",      "calculation", "me",
     "le",      "la",        "du",           "de",     "résultat",   "valeur",      "calcul",
     "suivant", "suivante",  "l'expression", "exacte", "exactement", "opération",   "l'opération"});
// May stand between the sum and the end of the sentence.
constexpr auto kClosers =
    std::to_array<std::string_view>({"equal", "equals", "equal to", "please", "exactly", "make", "exactement", "svp",
                                     "stp", "give", "s'il te plaît", "s'il vous plaît", "égale"});
// Ask for the sum before them.
constexpr auto kTrailing =
    std::to_array<std::string_view>({"is how much", "is how many", "is what", "equals what", "makes how much",
                                     "font combien", "fait combien", "ça fait combien", "égale combien"});
// May stand before a verb that asks for a sum.
constexpr auto kBeforeVerbs =
    std::to_array<std::string_view>({"please", "you", "to", "tu", "vous", "let's", "and", "then", "moi"});

struct Operation {
  std::string_view words;
  std::string_view sign;
};
constexpr auto kOperations = std::to_array<Operation>(
    {{"plus", "+"},           {"minus", "-"},           {"times", "*"},        {"multiplied by", "*"},
     {"divided by", "/"},     {"to the power of", "^"}, {"to the power", "^"}, {"modulo", "mod"},
     {"mod", "mod"},          {"moins", "-"},           {"fois", "*"},         {"multiplié par", "*"},
     {"multipliés par", "*"}, {"multipliée par", "*"},  {"divisé par", "/"},   {"divisés par", "/"},
     {"divisée par", "/"},    {"à la puissance", "^"},  {"puissance", "^"},    {"squared", "²"},
     {"cubed", "³"},          {"au carré", "²"},        {"au cube", "³"},      {"exposant", "^"}});
constexpr auto kPercentOf =
    std::to_array<std::string_view>({"percent of", "per cent of", "pour cent de", "pourcent de", "of", "de"});

// "the product of A and B"; `joins`: what stands between the numbers.
struct Form {
  std::string_view words;
  std::string_view joins;
  std::string_view sign;
  bool is_turned = false;  // B comes first
  bool is_larger_first = false;
  bool is_verb = false;
};
constexpr auto kForms = std::to_array<Form>({
    {"sum of", "and", "+"},
    {"product of", "and", "*"},
    {"quotient of", "and", "/"},
    {"difference between", "and", "-", false, true},
    {"difference of", "and", "-", false, true},
    {"somme de", "et", "+"},
    {"produit de", "et", "*"},
    {"produit de", "par", "*"},
    {"quotient de", "par", "/"},
    {"quotient de", "et", "/"},
    {"différence entre", "et", "-", false, true},
    {"différence de", "et", "-", false, true},
    {"add", "and", "+", false, false, true},
    {"add", "to", "+", true, false, true},
    {"multiply", "by", "*", false, false, true},
    {"multiply", "and", "*", false, false, true},
    {"divide", "by", "/", false, false, true},
    {"subtract", "from", "-", true, false, true},
    {"additionne", "et", "+", false, false, true},
    {"ajoute", "à", "+", true, false, true},
    {"multiplie", "par", "*", false, false, true},
    {"multiplier", "par", "*", false, false, true},
    {"divise", "par", "/", false, false, true},
    {"diviser", "par", "/", false, false, true},
    {"soustrais", "de", "-", true, false, true},
});

// A sum that was read, before it is known whether it was meant as one.
struct Reading {
  std::string expression;
  size_t end = 0;  // the token behind it
  int n_numbers = 0, n_operations = 0;
  std::vector<SumToken> signs;  // those between two values
  std::vector<std::string> numbers;
  bool has_parentheses = false;
};

class SumReader {
 public:
  explicit SumReader(std::vector<SumToken> tokens) : tokens_(std::move(tokens)) {}

  std::vector<std::string> run() const {
    std::vector<std::string> sums;
    for (size_t at = 0; at < tokens_.size() && sums.size() < kMaxSums;) {
      const std::optional<Reading> reading = read_at(at);
      if (reading) sums.push_back(reading->expression);
      at = reading ? reading->end : at + 1;
    }
    return sums;
  }

 private:
  bool is(size_t at, Kind kind) const { return at < tokens_.size() && tokens_[at].kind == kind; }
  bool is(size_t at, Kind kind, std::string_view text) const { return is(at, kind) && tokens_[at].text == text; }

  // How many tokens the words take; 0: they are not there.
  size_t phrase(size_t at, std::string_view words) const {
    size_t n = 0;
    for (size_t begin = 0; begin < words.size(); ++n) {
      const size_t end = std::min(words.find(' ', begin), words.size());
      if (!is(at + n, Kind::word, words.substr(begin, end - begin))) return 0;
      begin = end + 1;
    }
    return n;
  }
  template <class Words>
  size_t longest(size_t at, const Words& list) const {
    size_t n = 0;
    for (const std::string_view words : list) n = std::max(n, phrase(at, words));
    return n;
  }

  std::optional<Reading> read_at(size_t at) const {
    if (const size_t n = longest(at, kLeads)) {
      size_t begin = at + n;
      // The most that is not the sum itself: "the sum of 3 and 4" begins with a filler and is a form.
      for (;; ++begin) {
        if (auto reading = form(begin, false); reading && ends_well(reading->end)) return reading;
        const bool is_filler = longest(begin, kFillers) == 1 || is(begin, Kind::stop, ":");
        if (!is_filler) break;
      }
      if (auto reading = arithmetic(begin); reading && ends_well(reading->end)) return reading;
    }
    if (begins_sentence(at) || longest(at - 1, kBeforeVerbs) == 1) {
      if (auto reading = form(at, true); reading && ends_well(reading->end)) return reading;
    }
    if (begins_sentence(at)) {
      auto reading = arithmetic(at);
      if (!reading) reading = form(at, false);
      if (reading && (longest(reading->end, kTrailing) > 0 || (is_all_before(at) && is_all_behind(reading->end)))) {
        return reading;
      }
    }
    return std::nullopt;
  }

  bool begins_sentence(size_t at) const { return at == 0 || is(at - 1, Kind::stop); }
  bool is_all_before(size_t at) const {
    return std::all_of(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(at),
                       [](const SumToken& token) { return token.text == "\n"; });
  }
  bool is_all_behind(size_t at) const {
    return std::all_of(tokens_.begin() + static_cast<std::ptrdiff_t>(at), tokens_.end(), [](const SumToken& token) {
      return token.kind == Kind::stop || (token.kind == Kind::sign && token.text == "=");
    });
  }
  // With the sentence, or with what asks for the result.
  bool ends_well(size_t at) const {
    at += longest(at, kClosers);
    if (is(at, Kind::sign, "=")) return at + 1 == tokens_.size() || is(at + 1, Kind::stop, "?");
    if (at == tokens_.size()) return true;
    if (!is(at, Kind::stop)) return false;
    const std::string& stop = tokens_[at].text;
    return stop == "?" || stop == "!" || stop == "\n" || !tokens_[at].touches_right;
  }

  std::optional<Reading> form(size_t at, bool is_verb) const {
    for (const Form& form : kForms) {
      const size_t n = form.is_verb == is_verb ? phrase(at, form.words) : 0;
      if (n == 0) continue;
      if (auto reading = joined(at + n, form)) return reading;
    }
    return std::nullopt;
  }
  // A and B; sums and products may have more: A, B and C.
  std::optional<Reading> joined(size_t at, const Form& form) const {
    std::vector<std::string> numbers;
    const bool takes_many = !form.is_verb && (form.sign == "+" || form.sign == "*");
    bool was_last = false;
    for (;;) {
      // In French the little word comes again: la somme de 3 et de 4.
      if (!numbers.empty() && is(at, Kind::word, "de")) ++at;
      if (!is(at, Kind::number)) return std::nullopt;
      numbers.push_back(tokens_[at++].text);
      if (was_last) break;
      const bool has_comma = takes_many && is(at, Kind::stop, ",");
      was_last = phrase(at + has_comma, form.joins) == 1;
      if (!was_last && !has_comma) return std::nullopt;
      at += size_t{has_comma} + size_t{was_last};
    }
    const bool turns = form.is_turned || (form.is_larger_first && is_less(numbers[0], numbers[1]));
    if (turns) std::swap(numbers[0], numbers[1]);
    Reading reading;
    reading.end = at;
    for (const std::string& number : numbers) {
      reading.expression += (reading.expression.empty() ? "" : " " + std::string(form.sign) + " ") + number;
    }
    return reading;
  }
  static bool is_less(const std::string& a, const std::string& b) {
    return std::strtod(a.c_str(), nullptr) < std::strtod(b.c_str(), nullptr);
  }

  std::optional<Reading> arithmetic(size_t at) const {
    Reading reading;
    reading.end = at;
    if (!values(reading, 0) || reading.n_operations == 0 || reading.n_numbers < 2) return std::nullopt;
    if (is_something_else(reading)) return std::nullopt;
    return reading;
  }
  bool values(Reading& reading, int depth) const {
    if (depth > kMaxDepth || !value(reading, depth)) return false;
    while (const size_t n = operation(reading)) {
      reading.end += n;
      if (!value(reading, depth)) return false;
    }
    return true;
  }

  // A sign or words between two values; gives how many tokens they are.
  size_t operation(Reading& reading) const {
    const size_t at = reading.end;
    if (is(at, Kind::sign) && std::string_view("+-*/^").find(tokens_[at].text) != std::string_view::npos) {
      reading.signs.push_back(tokens_[at]);
      reading.expression += " " + tokens_[at].text + " ";
      ++reading.n_operations;
      return 1;
    }
    for (const Operation& operation : kOperations) {
      const size_t n = phrase(at, operation.words);
      if (n == 0 || operation.sign == "²" || operation.sign == "³") continue;
      reading.signs.push_back({Kind::word, std::string(operation.sign), false, false});
      reading.expression += " " + std::string(operation.sign) + " ";
      ++reading.n_operations;
      return n;
    }
    return 0;
  }

  bool value(Reading& reading, int depth) const {
    if (is(reading.end, Kind::sign, "-") && !is_spaced_right(reading.end)) {
      reading.expression += "-";
      ++reading.end;
    }
    if (!plain_value(reading, depth)) return false;
    if (const size_t n = percent_of(reading.end)) {
      reading.end += n;
      reading.expression += "% of ";
      ++reading.n_operations;
      return value(reading, depth + 1);
    }
    for (size_t n = power(reading); n > 0; n = power(reading)) reading.end += n;
    return true;
  }
  bool is_spaced_right(size_t at) const { return !tokens_[at].touches_right; }

  bool plain_value(Reading& reading, int depth) const {
    const size_t at = reading.end;
    if (is(at, Kind::number)) {
      reading.expression += tokens_[at].text;
      reading.numbers.push_back(tokens_[at].text);
      ++reading.n_numbers;
      ++reading.end;
      return true;
    }
    const bool is_root = is(at, Kind::sign, "√") || (is(at, Kind::word, "sqrt") && is(at + 1, Kind::open));
    if (is_root) {
      reading.expression += "sqrt(";
      reading.end = at + 1;
      ++reading.n_operations;
      if (depth > kMaxDepth || !plain_value(reading, depth + 1)) return false;
      reading.expression += ")";
      return true;
    }
    if (!is(at, Kind::open)) return false;
    reading.expression += "(";
    reading.has_parentheses = true;
    ++reading.end;
    if (!values(reading, depth + 1) || !is(reading.end, Kind::close)) return false;
    reading.expression += ")";
    ++reading.end;
    return true;
  }

  // "% of", "percent of"; gives how many tokens that is.
  size_t percent_of(size_t at) const {
    if (!is(at, Kind::sign, "%"))
      return longest(at, std::array{kPercentOf[0], kPercentOf[1], kPercentOf[2], kPercentOf[3]});
    const size_t n = longest(at + 1, std::array{kPercentOf[4], kPercentOf[5]});
    return n == 0 ? 0 : n + 1;
  }
  size_t power(Reading& reading) const {
    size_t n = 0;
    std::string_view sign;
    if (is(reading.end, Kind::sign, "²") || is(reading.end, Kind::sign, "³")) {
      n = 1;
      sign = tokens_[reading.end].text;
    }
    for (const Operation& operation : kOperations) {
      if (n > 0 || (operation.sign != "²" && operation.sign != "³")) continue;
      n = phrase(reading.end, operation.words);
      sign = operation.sign;
    }
    if (n == 0) return 0;
    reading.expression += sign == "²" ? "^2" : "^3";
    ++reading.n_numbers;
    ++reading.n_operations;
    return n;
  }

  // Numbers that touch their signs are also dates, ranges, scores, telephone numbers and sizes.
  static bool is_something_else(const Reading& reading) {
    if (reading.has_parentheses || reading.signs.empty()) return false;
    const bool is_loose = std::any_of(reading.signs.begin(), reading.signs.end(), [](const SumToken& sign) {
      return !sign.is_tight() || (sign.text != "-" && sign.text != "/" && sign.text != "*");
    });
    if (is_loose) return false;
    const bool has_times =
        std::any_of(reading.signs.begin(), reading.signs.end(), [](const SumToken& s) { return s.text == "*"; });
    if (reading.signs.size() > 1) return !has_times;
    const std::string& a = reading.numbers.front();
    const std::string& b = reading.numbers.back();
    const double first = std::strtod(a.c_str(), nullptr), second = std::strtod(b.c_str(), nullptr);
    const bool is_year = first >= 1900 && first <= 2100;
    if (has_times) return a.size() >= 3 && b.size() >= 3;  // 1920x1080
    if (reading.signs.front().text == "-") return first <= second || (is_year && second <= 12);
    return first <= 31 || is_year || first == second;  // 24/7, 3/4, 50/50
  }

  const std::vector<SumToken> tokens_;
};

}  // namespace

std::vector<std::string> sums_in(std::string_view message) {
  if (message.size() > kMaxSummedBytes) return {};
  std::vector<SumToken> tokens = sum_tokens(message, false);
  const bool is_french = std::any_of(tokens.begin(), tokens.end(), [](const SumToken& token) {
    return token.kind == Kind::word && std::find(kFrench.begin(), kFrench.end(), token.text) != kFrench.end();
  });
  if (is_french) tokens = sum_tokens(message, true);
  return SumReader(std::move(tokens)).run();
}

}  // namespace chimere::odo
