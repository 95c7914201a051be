#include <fabric/net/cidr.hpp>

#include <gtest/gtest.h>

namespace fabric::net {
namespace {

Cidr cidr(const char* text) {
  return Cidr::parse(text).value();
}

TEST(Cidr, RefusesHostBitsAndNamesTheCanonicalForm) {
  const auto r = Cidr::parse("10.1.2.3/16");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().message(), "'10.1.2.3/16' has host bits set; write 10.1.0.0/16");
}

TEST(Cidr, RefusesMalformedText) {
  for (const char* text :
       {"10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "fd00::/129", "10.0.0.0/-1", "10.0.0.0/016", "/8", "x/8"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(Cidr::parse(text).error().code, Errc::invalid);
  }
}

TEST(Cidr, ContainsAndOverlaps) {
  EXPECT_TRUE(cidr("10.0.0.0/8").contains(cidr("10.1.0.0/16")));
  EXPECT_FALSE(cidr("10.1.0.0/16").contains(cidr("10.0.0.0/8")));
  EXPECT_TRUE(cidr("10.1.0.0/16").overlaps(cidr("10.0.0.0/8")));
  EXPECT_FALSE(cidr("10.0.0.0/16").overlaps(cidr("10.1.0.0/16")));
  EXPECT_FALSE(cidr("0.0.0.0/0").contains(*IpAddress::parse("fd00::1")));
  EXPECT_TRUE(cidr("fd00:1::/33").contains(*IpAddress::parse("fd00:1:7fff::1")));
  EXPECT_FALSE(cidr("fd00:1::/33").contains(*IpAddress::parse("fd00:1:8000::1")));
}

TEST(Cidr, CanonicalSetDropsWhatIsContained) {
  const std::vector prefixes{cidr("fd00::/48"), cidr("10.1.0.0/16"), cidr("10.0.0.0/8"), cidr("10.1.0.0/16"),
                             cidr("11.0.0.0/8")};
  EXPECT_EQ(join(canonical_set(prefixes)), "10.0.0.0/8, 11.0.0.0/8, fd00::/48");
}

TEST(Cidr, ListIsCommaSeparated) {
  EXPECT_EQ(join(parse_cidr_list(" 10.0.0.0/16, fd00::/48 ").value()), "10.0.0.0/16, fd00::/48");
  EXPECT_TRUE(parse_cidr_list("")->empty());
  EXPECT_FALSE(parse_cidr_list("10.0.0.0/16,"));
  EXPECT_FALSE(parse_cidr_list("10.0.0.0/16,,10.1.0.0/16"));
}

TEST(Cidr, FirstOverlapNamesBothSides) {
  const std::vector a{cidr("10.0.0.0/16"), cidr("10.5.0.0/16")};
  const std::vector b{cidr("10.4.0.0/16"), cidr("10.5.1.0/24")};
  const auto overlap = first_overlap(a, b);
  ASSERT_TRUE(overlap);
  EXPECT_EQ(*overlap.left, a[1]);
  EXPECT_EQ(*overlap.right, b[1]);
  EXPECT_FALSE(first_overlap(a, {}));
}

}  // namespace
}  // namespace fabric::net
