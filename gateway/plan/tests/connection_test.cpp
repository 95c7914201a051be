#include <fabric/gateway/connection.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::gateway {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(GoDuration, IsWrittenAsGoWritesIt) {
  struct Row {
    RoundTrip value;
    std::string_view text;
  };

  for (const auto& row : {Row{0ns, "0s"}, Row{7ns, "7ns"}, Row{1500ns, "1.5µs"}, Row{1'234'567ns, "1.234567ms"},
                          Row{2ms, "2ms"}, Row{1'000'000'001ns, "1.000000001s"}, Row{90s, "1m30s"}}) {
    EXPECT_EQ(to_go_duration(row.value), row.text);
  }
}

TEST(PingMonitor, BecomesUpWithTheFirstAnswerAndDownAfterLosses) {
  PingMonitor monitor(3);
  EXPECT_EQ(monitor.health(), Health::unknown);
  auto now = 0ns;
  auto sequence = monitor.on_send(now);
  monitor.on_reply(sequence, now + 2ms);
  EXPECT_EQ(monitor.health(), Health::up);
  for (int i = 0; i < 3; ++i) {
    sequence = monitor.on_send(now += 1s);
    EXPECT_EQ(monitor.health(), Health::up) << i;
  }
  monitor.on_send(now += 1s);
  EXPECT_EQ(monitor.health(), Health::down);
  EXPECT_EQ(monitor.consecutive_losses(), 3U);
  monitor.on_reply(sequence, now);
  EXPECT_EQ(monitor.health(), Health::down) << "a late answer was counted as lost";
  sequence = monitor.on_send(now += 1s);
  monitor.on_reply(sequence, now + 1ms);
  EXPECT_EQ(monitor.health(), Health::up);
}

TEST(PingMonitor, KeepsStatisticsOfRoundTrips) {
  PingMonitor monitor(3);
  for (const auto rtt : {2ms, 4ms, 4ms, 4ms, 5ms, 5ms, 7ms, 9ms}) {
    const auto sequence = monitor.on_send(0ns);
    monitor.on_reply(sequence, rtt);
  }
  const LatencyStats expected{.last = 9ms, .min = 2ms, .average = 5ms, .max = 9ms, .deviation = 2ms};
  EXPECT_EQ(monitor.latency(), expected);
}

ConnectionInputs ready() {
  return {.peer = "b/node-1",
          .path = Path{net::IpAddress::v4(192, 0, 2, 1), net::IpAddress::v4(192, 0, 2, 2), std::nullopt},
          .sas = {.inbound = true, .outbound = true, .inbound_idle = {}},
          .health_check = true,
          .health_check_address = "10.1.0.1",
          .health = Health::up,
          .consecutive_losses = 0,
          .latency = std::nullopt};
}

TEST(Connection, FollowsSasAndPings) {
  EXPECT_EQ(connection_of(ready()).state, ConnectionState::connected);
  auto in = ready();
  in.path.reset();
  EXPECT_EQ(connection_of(in).state, ConnectionState::error);
  in = ready();
  in.sas.outbound = false;
  EXPECT_EQ(connection_of(in).state, ConnectionState::connecting);
  EXPECT_THAT(connection_of(in).message, HasSubstr("waiting for it to show that it installed our keys"));
  in = ready();
  in.health = Health::unknown;
  EXPECT_EQ(connection_of(in).state, ConnectionState::connecting);
  in.health_check = false;
  EXPECT_EQ(connection_of(in).state, ConnectionState::connected);
  in = ready();
  in.health = Health::down;
  in.consecutive_losses = 5;
  EXPECT_EQ(connection_of(in).state, ConnectionState::error);
  EXPECT_THAT(connection_of(in).message, HasSubstr("5 pings in a row to 10.1.0.1 were not answered; see whether ESP"));
}

}  // namespace
}  // namespace fabric::gateway
