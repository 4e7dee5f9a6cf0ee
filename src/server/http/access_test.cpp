// access_test.cpp  Keys and their file, and how often a client may ask.
#include "server/http/access.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace chimere::server {
namespace {

// SHA-256 of "abc", from the standard.
constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(ApiKeys, FindsByValueAndNamesThem) {
  ApiKeys keys;
  EXPECT_TRUE(keys.empty());
  ASSERT_TRUE(keys.add("one", "abc"));
  ASSERT_TRUE(keys.add_lines("# people\n\n  two : " + sha256_hex("def") + " \r\nthree:" + sha256_hex("ghi"), "keys"));
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_EQ(keys.find("abc")->name, "one");
  EXPECT_EQ(keys.find("def")->name, "two");
  EXPECT_EQ(keys.find("ghi")->name, "three");
  for (const char* other : {"", "ab", "abcd", "ABC", kAbc}) EXPECT_EQ(keys.find(other), nullptr) << other;
}

TEST(ApiKeys, LinesSayWhatAKeyMay) {
  ApiKeys keys;
  ASSERT_TRUE(keys.add_lines(key_line({"one", sha256_hex("1"), 5000, true}) + "\ntwo:" + sha256_hex("2") +
                                 " : admin\nthree:" + sha256_hex("3") + ":tokens-per-day=7",
                             "keys"));
  EXPECT_EQ(keys.find("1")->tokens_per_day, 5000u);
  EXPECT_TRUE(keys.find("1")->is_admin);
  EXPECT_EQ(keys.find("2")->tokens_per_day, 0u);
  EXPECT_TRUE(keys.find("2")->is_admin);
  EXPECT_EQ(keys.named("three")->tokens_per_day, 7u);
  EXPECT_FALSE(keys.named("three")->is_admin);
  EXPECT_EQ(keys.named("four"), nullptr);
}

TEST(ApiKeys, HashesAsTheStandardSays) {
  EXPECT_EQ(sha256_hex("abc"), kAbc);
  EXPECT_NE(random_key(), random_key());
}

TEST(ApiKeys, SaysWhichLineIsWrong) {
  const std::string hash = kAbc;
  const std::vector<std::string> lines = {"name",
                                          "name:12",
                                          ":" + hash,
                                          "a b:" + hash,
                                          "name:" + hash + "0",
                                          "name:z" + hash.substr(1),
                                          "ok:" + hash,
                                          "name:",
                                          "name:" + hash + ":boss",
                                          "name:" + hash + ":tokens-per-day=",
                                          "name:" + hash + ":tokens-per-day=0",
                                          "name:" + hash + ":tokens-per-day=1x",
                                          "name:" + hash + ":tokens-per-day=99999999999999999999"};
  for (const std::string& line : lines) {
    ApiKeys keys;
    const Status status = keys.add_lines("ok:" + hash + "\n" + line + "\n", "file");
    ASSERT_FALSE(status) << line;
    EXPECT_NE(status.error().message.find("file:2"), std::string::npos) << status.error().message;
    // A key that was written where its hash belongs must not end in a log.
    EXPECT_EQ(status.error().message.find(hash.substr(1, 20)), std::string::npos) << status.error().message;
  }
  EXPECT_FALSE(ApiKeys().add("name", ""));
  EXPECT_FALSE(ApiKeys().add_file("/nonexistent/keys"));
}

TEST(Access, ReplacesKeysAndLimitsWhileRequestsCome) {
  const auto keys_of = [](const char* key) {
    ApiKeys keys;
    EXPECT_TRUE(keys.add("one", key));
    return keys;
  };
  Access access(keys_of("old"), 0);
  const auto is_let_in = [&access](const char* key) {
    HttpRequest head;
    head.headers.emplace_back("x-api-key", key);
    return !access.refuse_stranger(head);
  };
  EXPECT_TRUE(is_let_in("old"));
  std::atomic<bool> stop = false;
  std::thread others([&] {
    while (!stop) {
      is_let_in("old");
      access.has_client("one");
    }
  });
  access.replace(keys_of("new"), 2, {}, {});
  EXPECT_FALSE(is_let_in("old"));
  EXPECT_TRUE(is_let_in("new"));
  HttpRequest head;
  head.client = "one";
  EXPECT_FALSE(access.refuse_too_many(head));
  EXPECT_FALSE(access.refuse_too_many(head));
  EXPECT_TRUE(access.refuse_too_many(head));
  access.replace(keys_of("new"), 0, {}, {});
  EXPECT_FALSE(access.refuse_too_many(head));
  stop = true;
  others.join();
}

TEST(RateLimiter, LetsAMinutesWorthThroughAndThenOneAtATime) {
  using std::chrono::seconds;
  RateLimiter limiter(6);
  const RateLimiter::Clock::time_point start{};
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(limiter.take("a", start)) << i;
  EXPECT_EQ(limiter.take("a", start), seconds(10));
  EXPECT_FALSE(limiter.take("b", start));
  EXPECT_EQ(limiter.take("a", start + seconds(4)), seconds(6));
  EXPECT_FALSE(limiter.take("a", start + seconds(10)));
  EXPECT_TRUE(limiter.take("a", start + seconds(10)));
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(limiter.take("a", start + seconds(1000))) << i;
  EXPECT_TRUE(limiter.take("a", start + seconds(1000)));
  RateLimiter off(0);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(off.take("a", start));
}

TEST(RateLimiter, ForgetsRatherThanGrows) {
  RateLimiter limiter(1);
  const RateLimiter::Clock::time_point start{};
  for (int i = 0; i < 100'000; ++i) EXPECT_FALSE(limiter.take(std::to_string(i), start));
}

}  // namespace
}  // namespace chimere::server
