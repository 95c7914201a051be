#include <fabric/async/testing.hpp>
#include <fabric/gateway/tunnel_records.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remote.hpp"
#include "tunnel_fake.hpp"

namespace fabric::gateway {
namespace {

using namespace std::chrono_literals;
using crypto::Bytes;
using testing::FakeNetwork;
using testing::FakeTunnelPort;
using testing::Filled;
using ::testing::HasSubstr;
using testing::kNow;
using testing::Remote;

/// A gateway that speaks and listens, and what it knows of the other one.
class Speaker {
 public:
  Speaker(async::TestLoop& loop, FakeNetwork& network, std::string cluster, std::uint8_t number)
      : me(std::move(cluster), number),
        address(net::IpAddress::v4(10, number, 0, 1)),
        port(network),
        loop_(loop),
        number_(number) {
    start();
  }

  /// A new process with the same name that knows nothing.
  void start() {
    records.reset();
    membership = std::make_unique<Membership>(me.id.cluster, me.psks, metrics);
    records = std::make_unique<TunnelRecords>(
        me.id, me.ring.instance(), me.psks, *membership, port,
        controller::Runtime{loop_.executor(), loop_.clock(), [] { return 0.5; }, metrics}, [this] { ++news; });
    records->listen_at({address});
  }

  /// As the broker would tell it.
  void learn(const Speaker& other) {
    Filled<api::Cluster> clusters({other.me.cluster()});
    membership->read_clusters(clusters.store);
    const auto said = other.announcement();
    RawAnnouncement raw{.keys = {}, .state = said.second.bytes};
    for (const auto& key : said.first)
      raw.keys.push_back(key.bytes);
    ASSERT_TRUE(membership->take(raw, kNow));
  }

  /// What it says now; the counter grows by each call of reword().
  const std::pair<std::vector<crypto::AnnouncedKey>, crypto::AnnouncedState>& announcement() const {
    if (!said_) reword();
    return *said_;
  }

  void reword(std::vector<crypto::Seen> seen = {}) const {
    crypto::StateRecord state;
    state.private_addresses = {net::IpAddress::v4(192, 0, 2, number_)};
    state.prefixes = {*net::Cidr::parse(fmt::format("10.{}.0.0/16", number_))};
    state.health_check = {address};
    state.seen = std::move(seen);
    std::vector<crypto::Generation> generations;
    for (const auto& mine : me.ring.mine())
      generations.push_back(mine.generation);
    said_.emplace(me.ring.records(generations), *me.ring.sign_state(std::move(state)));
  }

  bool tell() {
    const auto& [keys, state] = announcement();
    return records->tell(keys, state);
  }

  bool knows_newest_of(const Speaker& other) const {
    const auto found = membership->peers().find(other.me.id);
    return found != membership->peers().end() && found->second.state == other.announcement().second;
  }

  bool rejected(std::string_view reason, int times = 1) const {
    return metrics.render().find(fmt::format("fabric_records_rejected_total{{reason=\"{}\"}} {}\n", reason, times)) !=
           std::string::npos;
  }

  mutable Remote me;
  net::IpAddress address;
  telemetry::Registry metrics;
  FakeTunnelPort port;
  std::unique_ptr<Membership> membership;
  std::unique_ptr<TunnelRecords> records;
  int news = 0;

 private:
  async::TestLoop& loop_;
  std::uint8_t number_;
  mutable std::optional<std::pair<std::vector<crypto::AnnouncedKey>, crypto::AnnouncedState>> said_;
};

class TunnelRecordsTest : public ::testing::Test {
 protected:
  void meet() {
    a.learn(b);
    b.learn(a);
    a.news = b.news = 0;
  }

  void rotate(Speaker& speaker) {
    ASSERT_TRUE(speaker.me.ring.draw(kNow, 24h));
    speaker.reword();
  }

  /// Both say what they have to say, for so long.
  void talk(Duration during) {
    for (Duration spent{}; spent < during; spent += 1s) {
      a.tell();
      b.tell();
      loop.advance(1s);
    }
  }

  Bytes frame_of(const Speaker& speaker, const crypto::PskSet& psks) const {
    RawAnnouncement raw{.keys = {}, .state = speaker.announcement().second.bytes};
    for (const auto& key : speaker.announcement().first)
      raw.keys.push_back(key.bytes);
    return *seal_frame(raw, psks);
  }

  async::TestLoop loop;
  FakeNetwork network{loop.executor()};
  Speaker a{loop, network, "a", 1};
  Speaker b{loop, network, "b", 2};
};

TEST_F(TunnelRecordsTest, ANewGenerationReachesThePeerAndIsConfirmed) {
  meet();
  talk(2s);
  rotate(a);
  EXPECT_TRUE(a.tell());
  loop.settle();
  EXPECT_TRUE(b.knows_newest_of(a));
  EXPECT_EQ(b.news, 1);
  EXPECT_EQ(a.records->next(), std::nullopt) << "confirmed";
  const auto sent = network.sent;
  talk(300s);
  EXPECT_EQ(network.sent, sent) << "at rest nothing is sent";
}

TEST_F(TunnelRecordsTest, WhatIsLostIsSentAgainUntilItArrives) {
  meet();
  talk(2s);
  network.passes = [](const auto&, const auto&) { return false; };
  rotate(a);
  EXPECT_TRUE(a.tell());
  talk(120s);
  EXPECT_FALSE(b.knows_newest_of(a));
  network.passes = nullptr;
  talk(61s);
  EXPECT_TRUE(b.knows_newest_of(a));
  EXPECT_EQ(a.records->next(), std::nullopt);
}

TEST_F(TunnelRecordsTest, ALostReceiptCostsOneMoreDatagramAndNoNews) {
  meet();
  talk(2s);
  network.passes = [&](const auto& from, const auto&) { return from == a.address; };
  rotate(a);
  a.tell();
  loop.settle();
  EXPECT_TRUE(b.knows_newest_of(a));
  network.passes = nullptr;
  talk(5s);
  EXPECT_EQ(a.records->next(), std::nullopt);
  EXPECT_EQ(b.news, 1);
}

TEST_F(TunnelRecordsTest, AnOlderAnnouncementUndoesNothingAndIsAnsweredWithWhatIsKnown) {
  meet();
  const auto old = frame_of(a, a.me.psks);
  rotate(a);
  a.tell();
  loop.settle();
  network.inject(a.address, b.address, old);
  loop.settle();
  EXPECT_TRUE(b.knows_newest_of(a));
  EXPECT_EQ(b.news, 1);
  EXPECT_TRUE(b.rejected("stale_generation", 0)) << "two ways normally look like this";
}

TEST_F(TunnelRecordsTest, ARestartedPeerIsToldAgain) {
  meet();
  talk(2s);
  const auto sent = network.sent;
  b.me.ring = *KeyRing::open(b.me.id, b.me.entropy, b.me.psks, b.me.identity, kNow + 1h, {});
  EXPECT_TRUE(b.me.ring.draw(kNow, 24h));
  b.reword();
  b.start();
  b.learn(a);
  talk(3s);
  EXPECT_TRUE(a.knows_newest_of(b));
  EXPECT_GE(network.sent, sent + 4) << "both told each other, with receipts";
  EXPECT_EQ(a.records->next(), std::nullopt);
}

TEST_F(TunnelRecordsTest, WhatIsSaidOfOthersDoesNotConcernAPeer) {
  meet();
  talk(2s);
  const auto sent = network.sent;
  a.reword({{.peer = {"c", "n1"}, .instance = crypto::InstanceId({9}), .generation = crypto::Generation(7)}});
  talk(10s);
  EXPECT_EQ(network.sent, sent);
  a.reword({{.peer = b.me.id, .instance = b.me.ring.instance(), .generation = b.me.ring.mine().back().generation}});
  talk(10s);
  EXPECT_TRUE(b.knows_newest_of(a));
}

TEST_F(TunnelRecordsTest, APeerWithoutAnAddressInTheTunnelIsNotSpokenTo) {
  b.learn(a);
  EXPECT_FALSE(a.tell()) << "nothing left, so nothing counts as published";
  a.records->listen_at({});
  a.learn(b);
  EXPECT_FALSE(a.tell());
}

TEST_F(TunnelRecordsTest, HostileDatagramsAreRefusedCountedAndNotAnswered) {
  meet();
  crypto::PskSet foreign = testing::one_psk(7);
  Remote impostor("a", 9);
  RawAnnouncement forged;
  const auto config = impostor.endpoint().spec.backend_config;
  forged = *read_backend_config({config.begin(), config.end()});

  struct Case {
    const char* name;
    Bytes bytes;
    const char* reason;
  };

  const std::vector<Case> cases{
      {"noise", Bytes(500, 0x41), "malformed"},
      {"nothing", {}, "malformed"},
      {"too large", Bytes(kMaxFrame + 1, 0x41), "oversized"},
      {"a stranger's PSK", frame_of(a, foreign), "unknown_psk"},
      {"a member that speaks for another", *seal_frame(forged, b.me.psks), "bad_signature"},
      {"records of the own cluster", frame_of(b, b.me.psks), "foreign_gateway"},
      {"a receipt in the name of another",
       *seal_frame(Receipt{.from = {"c", "n1"}, .instance = {}, .owner = b.me.id, .counter = 1}, b.me.psks),
       "foreign_gateway"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto before = b.membership->peers();
    const auto count = [&] {
      return b.metrics
          .counter("fabric_records_rejected_total", "Announcements of other gateways that were refused.",
                   {{"reason", c.reason}})
          .value();
    };
    const auto rejected = count();
    const auto sent = network.sent;
    network.inject(net::IpAddress::v4(10, 9, 9, 9), b.address, c.bytes);
    loop.settle();
    EXPECT_EQ(count(), rejected + 1);
    EXPECT_EQ(network.sent, sent + 1) << "no answer";
    EXPECT_EQ(b.membership->peers(), before);
    EXPECT_EQ(b.news, 0);
    loop.advance(10s);
  }
}

TEST_F(TunnelRecordsTest, AFloodOfStrangersTakesNoWorkAndDoesNotShutOutPeers) {
  meet();
  for (int i = 0; i < 10'000; ++i)
    network.inject(net::IpAddress::v4(10, 9, 9, 9), b.address, Bytes(100, 0x41));
  loop.settle();
  const auto counted = b.metrics.render();
  EXPECT_THAT(counted, HasSubstr("fabric_records_rejected_total{reason=\"malformed\"} 40\n"));
  EXPECT_THAT(counted, HasSubstr("fabric_records_rejected_total{reason=\"rate_limited\"} 9960\n"));
  rotate(a);
  a.tell();
  loop.settle();
  EXPECT_TRUE(b.knows_newest_of(a));
}

TEST_F(TunnelRecordsTest, ReceiptsFromAnotherAddressThanThePeersConfirmNothing) {
  meet();
  network.passes = [&](const auto& from, const auto&) { return from != b.address; };
  a.tell();
  const Receipt receipt{.from = b.me.id,
                        .instance = b.me.ring.instance(),
                        .owner = a.me.id,
                        .counter = a.announcement().second.record.counter};
  network.inject(net::IpAddress::v4(10, 3, 0, 1), a.address, *seal_frame(receipt, a.me.psks));
  loop.settle();
  EXPECT_NE(a.records->next(), std::nullopt);
  network.passes = nullptr;
  network.inject(b.address, a.address, *seal_frame(receipt, a.me.psks));
  loop.settle();
  EXPECT_EQ(a.records->next(), std::nullopt);
}

TEST_F(TunnelRecordsTest, ASignOfLifeTakesTheMarkOffAPeerWhoseObjectSomebodyDeleted) {
  meet();
  Filled<api::Endpoint> empty;
  b.membership->note_absent({&empty.store}, kNow, 24h);
  ASSERT_TRUE(b.membership->peers().at(a.me.id).deleted);
  a.tell();
  loop.settle();
  EXPECT_TRUE(b.membership->peers().at(a.me.id).deleted) << "the same words again prove nothing";
  rotate(a);
  a.tell();
  loop.settle();
  EXPECT_FALSE(b.membership->peers().at(a.me.id).deleted);
}

}  // namespace
}  // namespace fabric::gateway
