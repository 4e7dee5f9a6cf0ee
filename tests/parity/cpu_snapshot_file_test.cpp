// A stored snapshot that is damaged in any way is refused.
#include "exactness.h"

namespace chimere::parity {
namespace {

TEST(SnapshotFile, RefusesDamage) {
  const ExecutablePtr e = Hybrid::of(Hybrid::Kind::delta_net).compile(1);
  ASSERT_TRUE(e);
  Sequence s = new_sequence(*e);
  go_on(*e, s, 70);
  auto snapshot = s.snapshot();
  ASSERT_TRUE(snapshot);
  const std::vector<std::byte> good = *serialize(*snapshot, *e, 5);
  ASSERT_TRUE(parse_snapshot(good, *e, 5));
  const auto refused = [&](std::span<const std::byte> bytes) {
    const auto parsed = parse_snapshot(bytes, *e, 5);
    return !parsed && parsed.error().message.find("snapshot: ") == 0;
  };
  std::vector<std::byte> bad = good;
  for (size_t i = 0; i < 48; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      bad[i] ^= std::byte{1} << bit;
      ASSERT_TRUE(refused(bad)) << "header byte " << i << " bit " << bit;
      bad[i] = good[i];
    }
  }
  for (size_t i = 48; i < good.size(); i += 1 + (i * 2654435761u) % 997) {
    const std::byte flip{static_cast<uint8_t>(1u << (i % 8))};
    bad[i] ^= flip;
    ASSERT_TRUE(refused(bad)) << "byte " << i << " of " << good.size();
    bad[i] = good[i];
  }
  for (size_t n = 0; n < good.size(); n += n < 64 ? 1 : 1009) ASSERT_TRUE(refused(std::span(good).first(n))) << n;
  ASSERT_TRUE(refused(std::span(good).first(good.size() - 1)));
  bad.push_back(std::byte{0});
  ASSERT_TRUE(refused(bad)) << "one byte too many";

  // Of another cache format, under the same key.
  const ExecutablePtr q8 = Hybrid::of(Hybrid::Kind::delta_net).compile(1, {DType::Q8_0, DType::Q8_0, false});
  ASSERT_TRUE(q8);
  EXPECT_FALSE(parse_snapshot(good, *q8, 5));
  Sequence t = new_sequence(*q8);
  EXPECT_FALSE(t.restore(*snapshot)) << "its pages have another size";
  EXPECT_EQ(t.length(), 0);
}

}  // namespace
}  // namespace chimere::parity
