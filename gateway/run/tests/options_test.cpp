#include <fabric/gateway/options.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace fabric::gateway {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<Options> parse(std::vector<const char*> flags) {
  flags.insert(flags.begin(), {"fabric-gateway", "--node-name=n", "--cluster-id=c"});
  return parse_options(static_cast<int>(flags.size()), flags.data());
}

TEST(Options, LimitsOfKeysAreTakenFromFlags) {
  const auto options =
      parse({"--rekey-interval=120", "--rekey-packets=5000", "--rekey-bytes=2000000", "--min-between-draws=0.5",
             "--min-drain=2", "--drain-idle=1.5", "--cipher-suites=chacha20-poly1305,aes-256-gcm"});
  ASSERT_TRUE(options) << options.error().message();
  EXPECT_EQ(options->limits.rotate_after, 120s);
  EXPECT_EQ(options->limits.soft_packets, 5000U);
  EXPECT_EQ(options->limits.soft_bytes, 2'000'000U);
  EXPECT_EQ(options->limits.min_between_draws, 500ms);
  EXPECT_EQ(options->limits.min_drain, 2s);
  EXPECT_EQ(options->limits.drain_idle, 1500ms);
  EXPECT_THAT(options->cipher_suites, ElementsAre(crypto::Suite::chacha20_poly1305, crypto::Suite::aes_gcm_256));
}

TEST(Options, WithoutFlagsTheDefaultsHold) {
  const auto options = parse({});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->limits.rotate_after, 1h);
  EXPECT_EQ(options->limits.soft_packets, std::uint64_t{1} << 32U);
  EXPECT_EQ(options->limits.soft_bytes, 0U);
  EXPECT_THAT(options->cipher_suites, ElementsAre(crypto::Suite::aes_gcm_256, crypto::Suite::chacha20_poly1305));
}

TEST(Options, WhatIsOutOfBoundsIsRefusedByName) {
  struct Row {
    const char* flag;
    const char* said;
  };

  for (const auto& row :
       {Row{"--rekey-interval=59", "--rekey-interval"}, Row{"--rekey-packets=999", "--rekey-packets"},
        Row{"--rekey-packets=68719476736", "--rekey-packets"}, Row{"--rekey-bytes=1", "--rekey-bytes"},
        Row{"--min-drain=-1", "--min-drain"}, Row{"--cipher-suites=des", "'des' is none of aes-256-gcm"},
        Row{"--cipher-suites=aes-256-gcm,aes-256-gcm", "named twice"}}) {
    SCOPED_TRACE(row.flag);
    const auto options = parse({row.flag});
    ASSERT_FALSE(options);
    EXPECT_THAT(options.error().message(), HasSubstr(row.said));
  }
}

}  // namespace
}  // namespace fabric::gateway
