#include "store/masking.h"

#include <gtest/gtest.h>

#include <string>

namespace chimere::store {
namespace {

TEST(Masking, FindsWhatShouldNotBeLearned) {
  const struct {
    std::string said, kept;
  } cases[] = {
      {"write to ann.lee+work@mail.example.org.", "write to [email]."},
      {"<ann@example.org>, bob@example.co.uk", "<[email]>, [email]"},
      {"call +33 6 12 34 56 78 or 06 12 34 56 78", "call [phone] or [phone]"},
      {"(212) 555-0123, 212-555-0123; 020 7946 0958", "[phone], [phone]; [phone]"},
      {"card 4111 1111 1111 1111 and 5500-0000-0000-0004", "card [card] and [card]"},
      {"IBAN FR14 2004 1010 0505 0001 3M02 606.", "IBAN [iban]."},
      {"DE89370400440532013000", "[iban]"},
      {"key sk-abcdefghijklmnopqrstuvwx, AKIAIOSFODNN7EXAMPLE", "key [key], [key]"},
      {"ghp_0123456789abcdefghijABCDEFGHIJ012345", "[key]"},
      {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0abc.SflKxwRJSMeKKF2QT4", "[key]"},
      {"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nbye", "[key]\nbye"},
      {"password: hunter22", "password: [secret]"},
      {"{\"api_key\": \"a1b2c3d4\"}", "{\"api_key\": \"[secret]\"}"},
      {"Authorization: Bearer abc123def", "Authorization: Bearer [secret]"},
      {"Mot de passe = Tr0ub4dor", "Mot de passe = [secret]"},
  };
  for (const auto& one : cases) EXPECT_EQ(masked(one.said), one.kept) << one.said;
}

TEST(Masking, LeavesTheRest) {
  for (const std::string text : {
           "What is 123456789 + 987654321?",
           "3 +12345678 = 12345681",
           "12 * (345 - 67) - 8",
           "Call me at 8.",
           "2024-11-17 to 2025-01-03, v1.2.3-4",
           "192.168.10.20 and 10.0.0.1:8080",
           "the token: which means a piece of a word",
           "a password is a secret; secrets are kept",
           "4111 1111 1111 1112 has a wrong digit",
           "x@y is no address, nor is @name",
           "1 000 000 or 1,000,000 people",
           "f(x) = x + 1; a - b",
           "def total(values): return sum(values)",
           "Élodie naïve ☂ 東京",
           "",
       }) {
    EXPECT_EQ(masked(text), text);
  }
}

TEST(Masking, WhatIsMaskedStaysSo) {
  const std::string once = masked("ann@example.org password=abc12345 +44 20 7946 0958");
  EXPECT_EQ(masked(once), once);
}

// Each begins something at every place and ends nothing: a search without a bound would take an hour.
TEST(Masking, LongTextsOfBeginningsEnd) {
  for (const std::string piece :
       {"-----BEGIN PRIVATE KEY-----", "a.", "1 ", "1-", "eyJ", "FR14 ", "(12) ", "password=", "+1", "a@a.", "sk-a"}) {
    std::string text;
    while (text.size() < (size_t{256} << 10)) text += piece;
    EXPECT_LE(masked(text).size(), text.size() + 16) << piece;
  }
}

}  // namespace
}  // namespace chimere::store
