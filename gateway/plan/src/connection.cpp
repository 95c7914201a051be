#include <fabric/gateway/connection.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fabric::gateway {

namespace {

/// Digits of a value in a unit, without trailing zeros: 1.5, 12, 0.000001.
std::string in_unit(std::int64_t value, std::int64_t unit, std::string_view suffix) {
  auto text = fmt::format("{}", value / unit);
  if (const auto rest = value % unit; rest != 0) {
    auto digits = fmt::format("{:0{}}", rest, fmt::formatted_size("{}", unit) - 1);
    digits.erase(digits.find_last_not_of('0') + 1);
    text += "." + digits;
  }
  return text + std::string(suffix);
}

}  // namespace

std::string to_go_duration(RoundTrip value) {
  constexpr std::int64_t kMicro = 1'000;
  constexpr std::int64_t kMilli = 1'000'000;
  constexpr std::int64_t kSecond = 1'000'000'000;
  const auto count = value.count();
  if (count == 0) return "0s";
  if (count < kMicro) return in_unit(count, 1, "ns");
  if (count < kMilli) return in_unit(count, kMicro, "µs");
  if (count < kSecond) return in_unit(count, kMilli, "ms");
  const auto minutes = count / (60 * kSecond);
  const auto seconds = in_unit(count % (60 * kSecond), kSecond, "s");
  return minutes == 0 ? seconds : fmt::format("{}m{}", minutes, seconds);
}

std::uint16_t PingMonitor::on_send(std::chrono::nanoseconds now) {
  if (pending_) ++losses_;
  pending_ = now;
  return ++sequence_;
}

void PingMonitor::on_reply(std::uint16_t sequence, std::chrono::nanoseconds now) {
  if (!pending_ || sequence != sequence_) return;
  const RoundTrip rtt = now - *pending_;
  pending_.reset();
  losses_ = 0;
  ++answers_;
  const auto value = static_cast<double>(rtt.count());
  const double before = value - mean_;
  mean_ += before / static_cast<double>(answers_);
  squares_ += before * (value - mean_);
  const auto old = latency_.value_or(LatencyStats{.min = rtt, .max = rtt});
  latency_ = LatencyStats{
      .last = rtt,
      .min = std::min(old.min, rtt),
      .average = RoundTrip(std::llround(mean_)),
      .max = std::max(old.max, rtt),
      .deviation = RoundTrip(std::llround(std::sqrt(squares_ / static_cast<double>(answers_)))),
  };
}

Health PingMonitor::health() const {
  if (losses_ >= max_loss_) return Health::down;
  return answers_ == 0 ? Health::unknown : Health::up;
}

std::string_view to_string(ConnectionState state) {
  switch (state) {
    case ConnectionState::connecting:
      return "connecting";
    case ConnectionState::connected:
      return "connected";
    case ConnectionState::error:
      return "error";
  }
  return "error";
}

Connection connection_of(const ConnectionInputs& in) {
  Connection out{.state = ConnectionState::connecting, .message = {}, .latency = in.latency};
  if (!in.path) {
    out.state = ConnectionState::error;
    out.message = fmt::format("gateway {}: no address of a family that this gateway has", in.peer);
    return out;
  }
  if (!in.sas.inbound || !in.sas.outbound) {
    out.message = fmt::format("gateway {}: waiting for it to {}", in.peer,
                              in.sas.inbound ? "show that it installed our keys" : "publish its keys");
    return out;
  }
  if (!in.health_check || in.health == Health::up) {
    out.state = ConnectionState::connected;
    return out;
  }
  if (in.health == Health::down) {
    out.state = ConnectionState::error;
    out.message = fmt::format(
        "gateway {}: {} pings in a row to {} were not answered; see whether {} between {} and {} is "
        "open",
        in.peer, in.consecutive_losses, in.health_check_address,
        in.path->encap ? fmt::format("UDP {}", in.path->encap->dport) : "ESP", in.path->local, in.path->remote);
    return out;
  }
  out.message = fmt::format("gateway {}: waiting for a ping answer from {}", in.peer, in.health_check_address);
  return out;
}

}  // namespace fabric::gateway
