// fuzz_matcher.cpp  Arbitrary bytes as a matcher's file: opened or refused, and if opened then asked about texts of a few words,
// which it scores with numbers, the same each time.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "retrieval/matcher.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace chimere;
  using retrieval::Matcher;
  using retrieval::MatchQuestion;
  std::vector<uint64_t> aligned(size / 8 + 1);
  if (size > 0) std::memcpy(aligned.data(), data, size);
  const auto file = gguf::File::parse(std::as_bytes(std::span(aligned)).first(size));
  if (!file) return 0;
  const auto matcher = Matcher::of(*file);
  if (!matcher) return 0;
  auto stemmer = store::Stemmer::open();
  CHECK(stemmer);
  const auto question = MatchQuestion::of("Who is the king of the hill?", {"king", "hill"}, {2.5, 1.5}, *stemmer);
  CHECK(question);
  std::vector<Matcher::Text> texts(3);
  for (size_t i = 0; i < 300; ++i) {
    const std::string stem = i % 3 == 0 ? "king" : i % 7 == 0 ? "queen" : "of";
    const auto asked = question->numbers.find(stem);
    texts[i % 2].words.push_back({asked == question->numbers.end() ? -1 : asked->second, matcher->vector_of(stem)});
  }
  const std::vector<float> scores = matcher->scores(*question, texts);
  CHECK(scores.size() == texts.size());
  const std::vector<float> again = matcher->scores(*question, texts);
  CHECK(std::memcmp(scores.data(), again.data(), scores.size() * sizeof(float)) == 0);
  return 0;
}
