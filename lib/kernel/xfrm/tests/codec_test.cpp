#include "codec.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <arpa/inet.h>

#include "build.hpp"

namespace fabric::kernel::xfrm {
namespace {

using namespace netstate;
using namespace netstate::test;

constexpr std::uint8_t kFill = 0xA7;

/// The payload of the only message in a batch.
std::vector<std::uint8_t> payload_of(Batch& batch) {
  const auto bytes = batch.seal(1);
  nlmsghdr header{};
  EXPECT_TRUE(read_body(bytes, header));
  EXPECT_EQ(header.nlmsg_len, bytes.size());
  return {bytes.begin() + sizeof(nlmsghdr), bytes.end()};
}

std::vector<std::uint8_t> payload_of(const SaObject& object) {
  Batch batch;
  EXPECT_TRUE(encode_add(batch, object).has_value());
  return payload_of(batch);
}

bool holds_key(std::span<const std::uint8_t> bytes) {
  const std::vector<std::uint8_t> run(8, kFill);
  return !std::ranges::search(bytes, run).empty();
}

TEST(SaCodec, ReadsBackWhatItWrote) {
  auto wanted = sa("2001:db8::2", 7, key_material(kFill));
  wanted.encap = UdpEncap{4500, 4501};
  wanted.soft_packets = 5;
  const SaObject object{sa_key("2001:db8::1", 0x1000), wanted};
  const auto parsed = parse_sa(payload_of(object));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(*parsed, object);
  EXPECT_EQ(parsed->sa.soft_packets, 5U);
  EXPECT_EQ(parsed->sa.hard_packets, 0U);
  EXPECT_EQ(parsed->sa.key, nullptr);
}

TEST(SaCodec, StaticSasAloneLackEsnAndHaveShortKeys) {
  SaObject object{sa_key("192.0.2.1", 0x1000), sa("192.0.2.2", 7, key_material(kFill))};
  Batch batch;
  EXPECT_EQ(encode_add_static(batch, object).error().code, Errc::invalid) << "a reqid of ours";
  object.sa.reqid = Reqid(186);
  for (const std::size_t size : {kShortKeyMaterialBytes, kKeyMaterialBytes}) {
    object.sa.key = std::make_shared<const Secret>(size);
    batch.clear();
    ASSERT_TRUE(encode_add_static(batch, object).has_value()) << size;
    const auto payload = payload_of(batch);
    xfrm_usersa_info body{};
    ASSERT_TRUE(read_body(payload, body));
    EXPECT_EQ(body.flags & XFRM_STATE_ESN, 0);
    unsigned key_bits = 0;
    each_attribute(payload, sizeof(body), [&](std::uint16_t type, std::span<const std::uint8_t> value) {
      if (type != XFRMA_ALG_AEAD) return;
      EXPECT_TRUE(read_body(value.subspan(offsetof(xfrm_algo_aead, alg_key_len)), key_bits));
    });
    EXPECT_EQ(key_bits, size * 8);
    EXPECT_FALSE(parse_sa(payload).has_value()) << "agents never see it";
  }
  batch.clear();
  object.sa.key = std::make_shared<const Secret>(28);
  EXPECT_EQ(encode_add_static(batch, object).error().code, Errc::invalid);
  object.sa.key = std::make_shared<const Secret>(kShortKeyMaterialBytes);
  EXPECT_EQ(encode_add(batch, object).error().code, Errc::invalid) << "agents use long keys only";
  EXPECT_EQ(batch.size(), 0U);
}

TEST(SaCodec, LeavesOutWhatIsNotOurs) {
  struct Row {
    const char* name;
    void (*change)(xfrm_usersa_info&);
  };

  const std::array rows{
      Row{"reqid of others", [](xfrm_usersa_info& info) { info.reqid = 1; }},
      Row{"AH", [](xfrm_usersa_info& info) { info.id.proto = IPPROTO_AH; }},
      Row{"transport mode", [](xfrm_usersa_info& info) { info.mode = XFRM_MODE_TRANSPORT; }},
      Row{"larval", [](xfrm_usersa_info& info) { info.id.spi = 0; }},
      Row{"unknown family", [](xfrm_usersa_info& info) { info.family = AF_UNIX; }},
  };
  const auto original = payload_of(SaObject{sa_key("192.0.2.1", 0x1000), sa("192.0.2.2", 7)});
  ASSERT_TRUE(parse_sa(original).has_value());
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    auto payload = original;
    xfrm_usersa_info info{};
    std::memcpy(&info, payload.data(), sizeof(info));
    row.change(info);
    std::memcpy(payload.data(), &info, sizeof(info));
    EXPECT_FALSE(parse_sa(payload).has_value());
  }
}

TEST(SaCodec, SurvivesMessagesCutAnywhere) {
  const auto payload = payload_of(SaObject{sa_key("192.0.2.1", 0x1000), sa("192.0.2.2", 7)});
  for (std::size_t size = 0; size < payload.size(); ++size) {
    const std::vector<std::uint8_t> cut(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(size));
    const auto parsed = parse_sa(cut);
    if (size < sizeof(xfrm_usersa_info)) EXPECT_FALSE(parsed.has_value()) << size;
  }
}

TEST(SaCodec, ReadsSequenceNumbersOfBothHalves) {
  auto payload = payload_of(SaObject{sa_key("192.0.2.1", 0x1000), sa("192.0.2.2", 7)});
  xfrm_replay_state_esn esn{};
  esn.oseq_hi = 2;
  esn.oseq = 3;
  esn.seq_hi = 4;
  esn.seq = 5;
  esn.replay_window = 1024;
  Batch batch;
  batch.begin(XFRM_MSG_NEWSA, 0);
  batch.attribute(XFRMA_REPLAY_ESN_VAL, esn);
  batch.attribute(XFRMA_LASTUSED, std::uint64_t{1'700'000'000});
  batch.end();
  const auto more = payload_of(batch);
  payload.insert(payload.end(), more.begin(), more.end());
  const auto parsed = parse_sa(payload);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->sa.counters->sent_sequence, 0x2'0000'0003ULL);
  EXPECT_EQ(parsed->sa.counters->received_sequence, 0x4'0000'0005ULL);
  EXPECT_EQ(parsed->sa.counters->last_used, TimePoint(std::chrono::seconds(1'700'000'000)));
}

TEST(Batch, HoldsNoKeyOnceItIsCleared) {
  Batch batch;
  ASSERT_TRUE(
      encode_add(batch, SaObject{sa_key("192.0.2.1", 0x1000), sa("192.0.2.2", 7, key_material(kFill))}).has_value());
  const auto bytes = batch.seal(1);
  ASSERT_TRUE(holds_key(bytes));
  batch.clear();
  EXPECT_FALSE(holds_key(bytes)) << "the buffer itself, which still belongs to the batch";
}

TEST(Batch, IsUnchangedByAMessageThatCannotBeEncoded) {
  Batch batch;
  EXPECT_FALSE(encode_add(batch, SaObject{sa_key("192.0.2.1", 1), sa("2001:db8::1", 7)}).has_value());
  EXPECT_FALSE(
      encode_put(batch, PolicyObject{policy_key(Direction::in, "10.0.0.0/8", "fd00::/8"), block()}, false).has_value());
  EXPECT_FALSE(encode_put(batch,
                          PolicyObject{policy_key(Direction::in, "10.0.0.0/8", "10.0.0.0/8"),
                                       esp("192.0.2.1", "2001:db8::1", 7)},
                          false)
                   .has_value());
  EXPECT_EQ(batch.size(), 0U);
}

TEST(Batch, NumbersItsMessages) {
  Batch batch;
  for (std::uint32_t i = 0; i < Batch::kMaxMessages; ++i) {
    ASSERT_FALSE(batch.full());
    encode_remove(batch, sa_key("192.0.2.1", i + 1));
  }
  EXPECT_TRUE(batch.full());
  const auto bytes = batch.seal(77);
  const auto size = bytes.size() / Batch::kMaxMessages;
  for (std::uint32_t i = 0; i < Batch::kMaxMessages; ++i) {
    nlmsghdr header{};
    ASSERT_TRUE(read_body(bytes.subspan(i * size), header));
    EXPECT_EQ(header.nlmsg_seq, 77 + i);
    EXPECT_EQ(header.nlmsg_type, XFRM_MSG_DELSA);
  }
}

TEST(PolicyCodec, ReadsBackWhatItWrote) {
  const std::vector<PolicyObject> policies{
      {policy_key(Direction::out, "10.1.0.0/16", "10.2.0.0/16"), esp("192.0.2.1", "192.0.2.2", 7)},
      {policy_key(Direction::in, "fd02::/48", "fd01::/48"), esp("0.0.0.0", "0.0.0.0", 7)},
      {policy_key(Direction::fwd, "fd02::/48", "::/0"), block()},
  };
  for (const auto& policy : policies) {
    Batch batch;
    ASSERT_TRUE(encode_put(batch, policy, false).has_value());
    EXPECT_EQ(parse_policy(payload_of(batch)), policy);
  }
}

TEST(PolicyCodec, LeavesOutWhatIsNotOurs) {
  struct Row {
    const char* name;
    void (*change)(PolicyObject&, xfrm_userpolicy_info&);
  };

  const std::array rows{
      Row{"ports", [](PolicyObject&, xfrm_userpolicy_info& info) { info.sel.dport_mask = 0xffff; }},
      Row{"protocol", [](PolicyObject&, xfrm_userpolicy_info& info) { info.sel.proto = IPPROTO_UDP; }},
      Row{"of a socket", [](PolicyObject&, xfrm_userpolicy_info& info) { info.dir = 3; }},
      Row{"blocks with a template", [](PolicyObject&, xfrm_userpolicy_info& info) { info.action = XFRM_POLICY_BLOCK; }},
      Row{"reqid of others",
          [](PolicyObject& object, xfrm_userpolicy_info&) {
            std::get<EspTemplate>(object.policy.action).reqid = Reqid(1);
          }},
      Row{"block of others",
          [](PolicyObject& object, xfrm_userpolicy_info& info) {
            object.policy = block();
            info.priority = 1000;
          }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    PolicyObject object{policy_key(Direction::out, "10.1.0.0/16", "10.2.0.0/16"), esp("192.0.2.1", "192.0.2.2", 7)};
    xfrm_userpolicy_info ignored{};
    row.change(object, ignored);
    Batch batch;
    ASSERT_TRUE(encode_put(batch, object, false).has_value());
    auto payload = payload_of(batch);
    xfrm_userpolicy_info info{};
    std::memcpy(&info, payload.data(), sizeof(info));
    row.change(object, info);
    std::memcpy(payload.data(), &info, sizeof(info));
    EXPECT_FALSE(parse_policy(payload).has_value());
  }
}

TEST(PolicyCodec, LeavesOutPoliciesWithAMark) {
  Batch batch;
  batch.begin(XFRM_MSG_NEWPOLICY, 0);
  const PolicyObject object{policy_key(Direction::out, "10.1.0.0/16", "10.2.0.0/16"), block()};
  Batch plain;
  ASSERT_TRUE(encode_put(plain, object, false).has_value());
  auto payload = payload_of(plain);
  ASSERT_TRUE(parse_policy(payload).has_value());
  batch.attribute(XFRMA_MARK, xfrm_mark{1, 1});
  batch.end();
  const auto mark = payload_of(batch);
  payload.insert(payload.end(), mark.begin(), mark.end());
  EXPECT_FALSE(parse_policy(payload).has_value());
}

}  // namespace
}  // namespace fabric::kernel::xfrm
