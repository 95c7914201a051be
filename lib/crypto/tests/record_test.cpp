#include <fabric/crypto/record.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "gateways.hpp"

namespace fabric::crypto {
namespace {

using testing::both_psks;
using testing::Gateway;
using testing::secret_of;
using testing::vector_of;

TEST(KeyRecord, IsEncodedAsTheVectorsSay) {
  for (const std::string name : {"low", "high"}) {
    const Gateway gateway(name);
    const auto made = sign(gateway.key, both_psks(), gateway.identity);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->bytes, vector_of(name + ".key"));
  }
}

TEST(StateRecord, IsEncodedAsTheVectorsSay) {
  for (const std::string name : {"low", "high"}) {
    const Gateway gateway(name);
    const auto made = sign(gateway.state, both_psks(), gateway.identity);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->bytes, vector_of(name + ".state"));
  }
}

TEST(KeyRecord, IsReadBackAsItWasMade) {
  const Gateway gateway("low");
  const auto made = *sign(gateway.key, both_psks(), gateway.identity);
  const auto read = verify_key_record(made.bytes, both_psks(), gateway.expected());
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(*read, made);
}

TEST(StateRecord, IsReadBackAsItWasMade) {
  const Gateway gateway("low");
  const auto made = *sign(gateway.state, both_psks(), gateway.identity);
  const auto read = verify_state_record(made.bytes, both_psks(), gateway.expected());
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(*read, made);
}

TEST(KeyRecord, IsVerifiedWithOneOfItsPsks) {
  const Gateway gateway("low");
  const auto made = *sign(gateway.key, both_psks(), gateway.identity);
  PskSet second;
  ASSERT_TRUE(second.add(*Psk::make(2, secret_of("psk2"))));
  EXPECT_TRUE(verify_key_record(made.bytes, second, gateway.expected()));
}

TEST(Records, AnyChangedMissingOrAddedByteIsRefused) {
  const Gateway gateway("low");
  const auto psks = both_psks();
  for (const std::string name : {"low.key", "low.state"}) {
    const auto& good = vector_of(name);
    const auto refused = [&](ByteView bytes) {
      return name == "low.key" ? !verify_key_record(bytes, psks, gateway.expected()).has_value()
                               : !verify_state_record(bytes, psks, gateway.expected()).has_value();
    };
    ASSERT_FALSE(refused(good));
    for (std::size_t i = 0; i < good.size(); ++i) {
      auto changed = good;
      changed[i] ^= 0x01;
      EXPECT_TRUE(refused(changed)) << name << " byte " << i;
      EXPECT_TRUE(refused(ByteView(good).first(i))) << name << " cut to " << i;
    }
    auto longer = good;
    longer.push_back(0);
    EXPECT_TRUE(refused(longer));
  }
}

TEST(KeyRecord, RefusalsNameTheirReason) {
  const Gateway low("low");
  const Gateway high("high");
  const auto psks = both_psks();
  PskSet foreign;
  ASSERT_TRUE(foreign.add(*Psk::make(1, Secret(48))));
  const auto good = sign(low.key, psks, low.identity)->bytes;
  auto bad_mac = good;
  bad_mac[good.size() - 65] ^= 1;
  auto bad_signature = good;
  bad_signature.back() ^= 1;
  auto changed_nonce = good;
  changed_nonce[100] ^= 1;
  auto version_2 = good;
  version_2[2 + std::string_view("fabric/v").size()] = '2';
  auto other_set = low.key;
  other_set.cluster_set = "other";
  auto late = low.expected();
  late.now += std::chrono::minutes(11);
  auto a_little_late = low.expected();
  a_little_late.now += std::chrono::minutes(9);
  auto unpinned = low.expected();
  unpinned.identity = nullptr;

  struct Row {
    std::string_view name;
    Bytes bytes;
    const PskSet* psks;
    Expected expected;
    std::optional<Reject> reject;
  };

  for (const auto& row : {
           Row{"good", good, &psks, low.expected(), std::nullopt},
           Row{"within the clock tolerance", good, &psks, a_little_late, std::nullopt},
           Row{"empty", {}, &psks, low.expected(), Reject::malformed},
           Row{"a state record", vector_of("low.state"), &psks, low.expected(), Reject::malformed},
           Row{"too long", Bytes(kMaxKeyRecord + 1), &psks, low.expected(), Reject::oversized},
           Row{"another version", version_2, &psks, low.expected(), Reject::unsupported_version},
           Row{"another cluster set", sign(other_set, psks, low.identity)->bytes, &psks, low.expected(),
               Reject::foreign_cluster_set},
           Row{"another gateway", good, &psks, high.expected(), Reject::foreign_gateway},
           Row{"no pinned identity", good, &psks, unpinned, Reject::unknown_identity},
           Row{"none of our PSKs", good, &foreign, low.expected(), Reject::unknown_psk},
           Row{"a changed MAC", bad_mac, &psks, low.expected(), Reject::bad_mac},
           Row{"a changed body", changed_nonce, &psks, low.expected(), Reject::bad_mac},
           Row{"a changed signature", bad_signature, &psks, low.expected(), Reject::bad_signature},
           Row{"signed by another cluster", sign(low.key, psks, high.identity)->bytes, &psks, low.expected(),
               Reject::bad_signature},
           Row{"expired", good, &psks, late, Reject::expired},
       }) {
    SCOPED_TRACE(row.name);
    const auto read = verify_key_record(row.bytes, *row.psks, row.expected);
    if (row.reject) {
      ASSERT_FALSE(read);
      EXPECT_EQ(to_string(read.error()), to_string(*row.reject));
    } else {
      EXPECT_TRUE(read);
    }
  }
}

TEST(KeyRecord, TheMacOfAPskThatWeDoNotHoldIsStillBoundByTheSignature) {
  const Gateway gateway("low");
  PskSet first;
  ASSERT_TRUE(first.add(*Psk::make(1, secret_of("psk1"))));
  auto bytes = sign(gateway.key, both_psks(), gateway.identity)->bytes;
  bytes[bytes.size() - 65] ^= 1;  // The last byte of the MAC made with PSK 2.
  const auto read = verify_key_record(bytes, first, gateway.expected());
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error(), Reject::bad_signature);
}

TEST(KeyRecord, SigningRefusesWhatTheDecoderWouldRefuse) {
  const Gateway gateway("low");
  const std::vector<std::pair<std::string_view, std::function<void(KeyRecord&)>>> rows = {
      {"no suites", [](KeyRecord& r) { r.suites.clear(); }},
      {"too many suites", [](KeyRecord& r) { r.suites.assign(9, 1); }},
      {"an empty cluster", [](KeyRecord& r) { r.owner.cluster.clear(); }},
      {"a long cluster", [](KeyRecord& r) { r.owner.cluster.assign(64, 'a'); }},
      {"a long gateway", [](KeyRecord& r) { r.owner.gateway.assign(254, 'a'); }},
      {"a time before 1970", [](KeyRecord& r) { r.not_after = TimePoint(Duration(-1)); }},
  };
  for (const auto& [name, spoil] : rows) {
    auto record = gateway.key;
    spoil(record);
    EXPECT_FALSE(sign(record, both_psks(), gateway.identity)) << name;
  }
  EXPECT_FALSE(sign(gateway.key, PskSet{}, gateway.identity));
}

TEST(Rejects, HaveDifferentNames) {
  std::set<std::string_view> names;
  for (const auto reject : kAllRejects)
    names.insert(to_string(reject));
  EXPECT_EQ(names.size(), kAllRejects.size());
}

TEST(RecordTexts, SayWhyTheyAreRefused) {
  const auto text = [](std::size_t size) { return to_base64(Bytes(size, 7)); };

  struct Row {
    std::string_view name;
    std::string text;
    std::optional<Reject> reject;
  };

  for (const auto& row :
       {Row{"one", text(1), {}}, Row{"two of the largest", text(kMaxKeyRecord) + "," + text(kMaxKeyRecord), {}},
        Row{"none", "", Reject::malformed}, Row{"an empty one", text(1) + ",", Reject::malformed},
        Row{"no base64", "%%%", Reject::malformed}, Row{"a long one", text(kMaxKeyRecord + 3), Reject::oversized},
        Row{"three", "AAAA,AAAA,AAAA", Reject::oversized}}) {
    SCOPED_TRACE(row.name);
    const auto read = read_key_list(row.text);
    EXPECT_EQ(read.has_value(), !row.reject);
    if (row.reject) EXPECT_EQ(read.error(), *row.reject);
  }
  EXPECT_EQ(read_state_text(text(kMaxStateRecord))->size(), kMaxStateRecord);
  EXPECT_EQ(read_state_text(text(kMaxStateRecord + 3)).error(), Reject::oversized);
  EXPECT_EQ(read_state_text("").error(), Reject::malformed);
}

}  // namespace
}  // namespace fabric::crypto
