#include "odo/sums.h"

#include <gtest/gtest.h>

#include "tools/expression.h"

namespace chimere::odo {
namespace {

TEST(SumsTest, WhatIsAskedForIsRead) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"What is (123 + 456) * 7?", "4053"},
      {"what is 412 + 298 * 511?", "152690"},
      {"Calculate 412 * 298 - 511.", "122265"},
      {"compute 3^5 - 2", "241"},
      {"234 times 17 minus 5", "3973"},
      {"What is 412 plus 298 minus 511?", "199"},
      {"What's 12*7?", "84"},
      {"What’s 12 × 7 ?", "84"},
      {"12 * 7", "84"},
      {"12*7", "84"},
      {"3x4", "12"},
      {"what is 3 x 4", "12"},
      {"2**10 =", "1024"},
      {"2 + 2 = ?", "4"},
      {"Hi! What is 100 - 58?", "42"},
      {"100-58", "42"},
      {"What is 144/12?", "12"},
      {"What is 7 ÷ 2?", "3.5"},
      {"How much is 15% of 80?", "12"},
      {"What is 12 percent of 250?", "30"},
      {"what does 12 plus 30 equal?", "42"},
      {"What is the sum of 12 and 30?", "42"},
      {"What is the sum of 1, 2 and 3?", "6"},
      {"What is the product of 12 and 7?", "84"},
      {"What is the difference between 7 and 12?", "5"},
      {"What is the result of 1,234,567 * 2?", "2469134"},
      {"What is 1,234 + 1?", "1235"},
      {"What is 12 squared plus 1?", "145"},
      {"What is 3² + 4²?", "25"},
      {"What is 2 to the power of 10?", "1024"},
      {"What is √16 + 1?", "5"},
      {"Please multiply 12 by 7.", "84"},
      {"Can you subtract 5 from 12?", "7"},
      {"Add 3 to 4, please.", "7"},
      {"Divide 84 by 2", "42"},
      {"12 * 7 is how much?", "84"},
      {"Please compute: -5 + 3", "-2"},
      {"What is 3/4 + 1/2?", "1.25"},
      {"What is 10 / 4? Explain it to me.", "2.5"},
      {"I have a question.\nWhat is 6 * 7?\nThanks", "42"},
      {"combien font 12,5 × 8 ?", "100"},
      {"Combien font 412 moins 298 plus 511 ?", "625"},
      {"Combien font 123 fois 45 ?", "5535"},
      {"quel est le produit de 12 et 7", "84"},
      {"Quelle est la somme de 12 et de 30 ?", "42"},
      {"Quelle est la différence entre 12 et 7 ?", "5"},
      {"Quel est le quotient de 84 par 2 ?", "42"},
      {"Calcule 3 au carré plus 1.", "10"},
      {"Combien font 15 % de 80 ?", "12"},
      {"Combien font 15 pour cent de 80 ?", "12"},
      {"Que vaut 1 000 000 / 8 ?", "125000"},
      {"Multiplie 12 par 7.", "84"},
      {"Calcule 84 divisé par 2, s'il te plaît.", "42"},
      {"Quel est le résultat de (12 + 3) x 4 ?", "60"},
      {"12 fois 7 ça fait combien ?", "84"},
      {"Combien vaut 2,5 + 1,25 ?", "3.75"},
      {"CALCULE 6 FOIS 7", "42"},
  };
  for (const auto& [text, expected] : cases) {
    const std::vector<std::string> sums = sums_in(text);
    ASSERT_EQ(sums.size(), 1u) << text;
    const auto value = tools::evaluate(sums[0]);
    EXPECT_EQ(value ? value->text : value.error().message, expected) << text << ": " << sums[0];
  }
}

TEST(SumsTest, WhatIsNoSumIsLeftAlone) {
  for (const char* text : {
           "",
           "Hello",
           "Bonjour !",
           "12",
           "What is 12?",
           "(12)",
           "What is -5?",
           "C++ or Rust?",
           "Explain HTTP/2.",
           // Ranges, scores and years
           "10-12 people",
           "What is 10-12?",
           "A table for 10-12 people, please",
           "What is 5 - 7 people?",
           "10–12",
           "What happened 1914-1918?",
           "What is 1914-1918?",
           "What is 3-4 business days?",
           "It was 3 - 4 at half time.",
           "Pages 12-15",
           "What are 2 - 3 good books?",
           // Dates and times
           "2024-11-17",
           "What is 2024-11-17?",
           "What is 2024-11?",
           "17/11/2024",
           "What is 11/17?",
           "What is 9/11?",
           "What is 17/11/2024 in words?",
           "What is 12:30 - 5?",
           "What is 5 - 12:30?",
           "Quel jour était le 17-11-2024 ?",
           "What is 24/7?",
           // Versions, telephone numbers, addresses, keys
           "v1.2-3",
           "What is v1.2-3?",
           "What is 1.2.3 - 4?",
           "What is 192.168.0.1/24?",
           "555-1234",
           "What is 800-555-1234?",
           "+33 6 12 34 56 78",
           "Call 06 12 34 56 78",
           "What is 007 + 1?",
           "What is COVID-19?",
           "What is 978-3-16-148410-0?",
           "What is CVE-2024-3094?",
           "What is ISO-8859-1?",
           "What is 4111111111111111111111111111111111111111111 - 1?",
           // Fractions and numbers in prose
           "Add 1/2 cup of sugar",
           "What is 3/4 of a cup?",
           "What is 1/2?",
           "3/4 of the people",
           "50/50",
           "What is 50/50?",
           "What is 3 plus years of experience?",
           "Give me 3 + 1 examples",
           "1920x1080",
           "What is 1920x1080?",
           "What is a 2x4?",
           "What is the difference between Python 2 and 3?",
           "What is the sum of all fears?",
           "What is 3 + 4 in binary?",
           "What is 5 % 3?",
           "What is 10 km / 2 h?",
           "What is $12 + $5?",
           "What is 12€ + 5€?",
           "What is 2 + 2 = 5 about?",
           "What is 2 + x?",
           "What is 3 +?",
           "What is (3 + 4?",
           "What is 3 + 4)?",
           "- 3 eggs\n- 4 apples",
           "1. 2 + 3 is easy",
           "I bought 3 + 4 of them and then we left.",
           "Ajoute 1/2 verre de lait",
           "Quel est le score, 3-2 ?",
           "Il y a 10-12 personnes.",
           "Le match a fini 3-2.",
           "Ajoute 3 et 4 oeufs",
           "Combien font 3 pommes et 4 poires ?",
           "La page 12/30",
           "Multiplie les pains par 2",
           // Code
           "`12 * 7`",
           "What is `12 * 7`?",
           "```\nwhat is 12 * 7\n```",
           "What is ```python\n12 * 7\n```?",
           "print(3 + 4)",
           "x = 3 + 4",
           "Compute 3 + 4 in Python",
           "calculate(3, 4)",
           "for i in range(3 + 4): pass",
           "What is 0x1F + 1?",
       }) {
    const std::vector<std::string> sums = sums_in(text);
    EXPECT_TRUE(sums.empty()) << text << ": " << sums.front();
  }
}

TEST(SumsTest, SeveralAndHostileOnes) {
  EXPECT_EQ(sums_in("What is 3 + 4? And what is 5 * 6?"), (std::vector<std::string>{"3 + 4", "5 * 6"}));
  std::string many;
  for (int i = 0; i < 20; ++i) many += "What is 3 + 4? ";
  EXPECT_EQ(sums_in(many).size(), kMaxSums);
  EXPECT_TRUE(sums_in("What is " + std::string(1000, '(') + "1 + 2" + std::string(1000, ')') + "?").empty());
  EXPECT_TRUE(sums_in("What is " + std::string(2000, '-') + "1?").empty());
  EXPECT_TRUE(sums_in("What is 1 + 2?" + std::string(kMaxSummedBytes, ' ')).empty());
  EXPECT_TRUE(sums_in("What is 1 + \xFF\xC3?").empty());
  EXPECT_TRUE(sums_in("`").empty());
}

}  // namespace
}  // namespace chimere::odo
