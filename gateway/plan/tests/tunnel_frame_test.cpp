#include <fabric/gateway/tunnel_frame.hpp>

#include <gtest/gtest.h>

#include <string>

namespace fabric::gateway {
namespace {

using crypto::Bytes;
using crypto::Reject;

crypto::PskSet psks_of(std::initializer_list<std::uint32_t> numbers) {
  crypto::PskSet psks;
  for (const auto number : numbers) {
    Secret psk(48);
    psk.writable()[0] = static_cast<std::uint8_t>(number);
    EXPECT_TRUE(psks.add(*crypto::Psk::make(number, psk)));
  }
  return psks;
}

RawAnnouncement announcement() {
  return {.keys = {Bytes(300, 1), Bytes(300, 2)}, .state = Bytes(900, 3)};
}

Receipt receipt() {
  return {.from = {"a", "n1"}, .instance = crypto::InstanceId({1, 2, 3}), .owner = {"b", "n2.example"}, .counter = 77};
}

Bytes sealed(const Frame& frame, const crypto::PskSet& psks) {
  return *seal_frame(frame, psks);
}

TEST(TunnelFrame, ComesBackAsItWasSealed) {
  const auto psks = psks_of({1});
  const RawAnnouncement one_key{.keys = {Bytes(300, 1)}, .state = Bytes(1, 3)};
  for (const auto& raw : {announcement(), one_key}) {
    const auto opened = open_frame(sealed(raw, psks), psks);
    ASSERT_TRUE(opened);
    const auto& got = std::get<RawAnnouncement>(*opened);
    EXPECT_EQ(got.keys, raw.keys);
    EXPECT_EQ(got.state, raw.state);
  }
  const auto opened = open_frame(sealed(receipt(), psks), psks);
  ASSERT_TRUE(opened);
  EXPECT_EQ(std::get<Receipt>(*opened), receipt());
}

TEST(TunnelFrame, OpensWithEitherPskDuringARotation) {
  const auto frame = sealed(receipt(), psks_of({1, 2}));
  EXPECT_TRUE(open_frame(frame, psks_of({1})));
  EXPECT_TRUE(open_frame(frame, psks_of({2})));
  EXPECT_TRUE(open_frame(frame, psks_of({2, 3})));
  const auto opened = open_frame(frame, psks_of({3}));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), Reject::unknown_psk);
}

TEST(TunnelFrame, EveryChangedByteIsNoticed) {
  const auto psks = psks_of({1});
  const auto frame = sealed(receipt(), psks);
  for (std::size_t i = 0; i < frame.size(); ++i) {
    auto changed = frame;
    changed[i] ^= 1U;
    EXPECT_FALSE(open_frame(changed, psks)) << "byte " << i;
  }
}

TEST(TunnelFrame, EveryTruncationAndATailAreRefused) {
  const auto psks = psks_of({1, 2});
  const auto frame = sealed(announcement(), psks);
  for (std::size_t size = 0; size < frame.size(); ++size)
    EXPECT_FALSE(open_frame(crypto::ByteView(frame).first(size), psks)) << size;
  auto longer = frame;
  longer.push_back(0);
  EXPECT_FALSE(open_frame(longer, psks));
}

TEST(TunnelFrame, RefusesWhatIsTooLargeInBothDirections) {
  const auto psks = psks_of({1});
  const RawAnnouncement large{.keys = {Bytes(300, 1)}, .state = Bytes(kMaxFrame, 3)};
  ASSERT_FALSE(seal_frame(large, psks));
  EXPECT_EQ(seal_frame(large, psks).error(), Reject::oversized);
  const auto opened = open_frame(Bytes(kMaxFrame + 1, 0), psks);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), Reject::oversized);
}

TEST(TunnelFrame, RefusesAKeyRecordThatIsTooLarge) {
  const auto psks = psks_of({1});
  const RawAnnouncement large{.keys = {Bytes(crypto::kMaxKeyRecord + 1, 1)}, .state = Bytes(10, 3)};
  const auto opened = open_frame(sealed(large, psks), psks);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), Reject::oversized);
}

TEST(TunnelFrame, WithoutARightMacNothingElseIsLookedAt) {
  const auto psks = psks_of({1});
  Secret other(48);
  other.writable()[0] = 9;
  crypto::PskSet forged;
  ASSERT_TRUE(forged.add(*crypto::Psk::make(1, other)));
  auto frame = sealed(announcement(), forged);
  // The number and fingerprint are public: a stranger may name our PSK.
  const auto id = psks.newest()->id();
  std::ranges::copy(id.fingerprint, frame.begin() + 9);
  const auto opened = open_frame(frame, psks);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), Reject::bad_mac);
}

}  // namespace
}  // namespace fabric::gateway
