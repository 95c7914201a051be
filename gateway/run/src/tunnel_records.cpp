#include <fabric/gateway/tunnel_records.hpp>
#include <fabric/telemetry/log.hpp>

#include <algorithm>

namespace fabric::gateway {

namespace {

/// Datagrams that one call of tell() sends; the rest follows after kNextBurst.
constexpr std::size_t kBurst = 64;
constexpr Duration kNextBurst{250};
/// Datagrams in a second whose MAC is computed: of a peer's announced addresses, and of all others together. An
/// announcement may come from an address that only itself announces.
constexpr double kPerPeer = 10;
constexpr double kStrangers = 20;
constexpr double kSecondsOfBurst = 2;

}  // namespace

TunnelRecords::TunnelRecords(crypto::GatewayId self, crypto::InstanceId instance, const crypto::PskSet& psks,
                             Membership& membership, TunnelPort& port, controller::Runtime runtime,
                             std::function<void()> news)
    : self_(std::move(self)),
      instance_(instance),
      psks_(psks),
      membership_(membership),
      port_(port),
      runtime_(std::move(runtime)),
      news_(std::move(news)),
      strangers_(kStrangers, kStrangers * kSecondsOfBurst) {
  rejected_records(runtime_.metrics, "rate_limited");
  port_.on_receive([this](const Datagram& datagram) { receive(datagram); });
}

TunnelRecords::~TunnelRecords() {
  port_.on_receive(nullptr);
}

void TunnelRecords::listen_at(const std::vector<net::IpAddress>& own) {
  own_ = own;
  const auto done = port_.listen_at(own);
  const std::string trouble = done ? "" : done.error().message();
  // The broker carries the same; this is tried again by each call.
  if (trouble != port_trouble_ && !done) log::warn("records cannot be taken from the tunnel", {{"error", trouble}});
  port_trouble_ = trouble;
}

// --- to others -------------------------------------------------------------------------------------------------------

bool TunnelRecords::tell(std::span<const crypto::AnnouncedKey> keys, const crypto::AnnouncedState& state) {
  if (counter_ != state.record.counter) renew_frame(keys, state);
  schedule_.set_targets(targets(state.record), runtime_.clock.steady());
  send_due();
  runtime_.metrics
      .gauge("fabric_tunnel_unconfirmed_peers", "Peers that did not confirm through the tunnel what this gateway says.")
      .set(static_cast<double>(schedule_.unconfirmed()));
  return left_;
}

void TunnelRecords::renew_frame(std::span<const crypto::AnnouncedKey> keys, const crypto::AnnouncedState& state) {
  Wording wording{.keys = {}, .state = state.record};
  wording.state.counter = 0;
  wording.state.seen.clear();
  RawAnnouncement raw{.keys = {}, .state = state.bytes};
  for (const auto& key : keys)
    raw.keys.push_back(key.bytes);
  wording.keys = raw.keys;
  if (wordings_ == 0 || wording != wording_) ++wordings_;
  wording_ = std::move(wording);
  auto frame = seal_frame(raw, psks_);
  if (!frame) log::warn("what this gateway says is too large for the tunnel and goes by the broker only");
  frame_ = frame ? *std::move(frame) : crypto::Bytes();
  counter_ = state.record.counter;
  left_ = false;
}

std::map<crypto::GatewayId, TunnelTarget> TunnelRecords::targets(const crypto::StateRecord& state) const {
  std::map<crypto::GatewayId, TunnelTarget> result;
  if (frame_.empty()) return result;
  for (const auto& [id, peer] : membership_.peers()) {
    const auto& theirs = peer.state.record;
    const auto address = theirs.leaving ? std::nullopt : address_of(theirs);
    if (!address) continue;
    TunnelTarget target{
        .instance = theirs.instance, .address = *address, .wording = wordings_, .seen = {}, .counter = state.counter};
    std::ranges::copy_if(state.seen, std::back_inserter(target.seen),
                         [&](const crypto::Seen& seen) { return seen.peer == id; });
    result.emplace(id, std::move(target));
  }
  return result;
}

/// Within the prefixes that the peer announces, since only those have policies that lead into the tunnel.
std::optional<net::IpAddress> TunnelRecords::address_of(const crypto::StateRecord& peer) const {
  const auto usable = std::ranges::find_if(peer.health_check, [&](const net::IpAddress& address) {
    return std::ranges::any_of(own_, [&](const auto& own) { return own.family() == address.family(); }) &&
           std::ranges::any_of(peer.prefixes, [&](const net::Cidr& prefix) { return prefix.contains(address); });
  });
  if (usable == peer.health_check.end()) return std::nullopt;
  return *usable;
}

void TunnelRecords::send_due() {
  auto& metrics = runtime_.metrics;
  for (const auto& peer : schedule_.take_due(runtime_.clock.steady(), kBurst, runtime_.random())) {
    const bool sent = send(schedule_.target(peer)->address, frame_);
    left_ = left_ || sent;
    metrics
        .counter("fabric_tunnel_records_sent_total", "Datagrams with an announcement, by whether they left.",
                 {{"result", sent ? "sent" : "failed"}})
        .add();
  }
}

bool TunnelRecords::send(const net::IpAddress& to, crypto::ByteView frame) {
  const auto own = std::ranges::find_if(own_, [&](const auto& address) { return address.family() == to.family(); });
  return own != own_.end() && port_.send(*own, to, frame).has_value();
}

std::optional<async::SteadyTime> TunnelRecords::next() const {
  const auto next = schedule_.next();
  if (!next) return std::nullopt;
  return std::max(*next, runtime_.clock.steady() + kNextBurst);
}

// --- from others -----------------------------------------------------------------------------------------------------

void TunnelRecords::receive(const Datagram& datagram) {
  if (!admits(datagram.from)) return refuse("rate_limited");
  const auto frame = open_frame(datagram.bytes, psks_);
  if (!frame) return refuse(to_string(frame.error()));
  std::visit([&](const auto& content) { take(content, datagram); }, *frame);
}

bool TunnelRecords::admits(const net::IpAddress& from) {
  const auto& peers = membership_.peers();
  const auto now = runtime_.clock.steady();
  std::erase_if(known_, [&](const auto& entry) { return !peers.contains(entry.first); });
  const auto sender = std::ranges::find_if(peers, [&](const auto& entry) {
    return std::ranges::find(entry.second.state.record.health_check, from) !=
           entry.second.state.record.health_check.end();
  });
  if (sender == peers.end()) return strangers_.take(now);
  return known_.try_emplace(sender->first, kPerPeer, kPerPeer * kSecondsOfBurst).first->second.take(now);
}

void TunnelRecords::take(const RawAnnouncement& raw, const Datagram& datagram) {
  const auto taken = membership_.take(raw, runtime_.clock.now());
  if (!taken) return refuse(to_string(taken.error()));
  runtime_.metrics
      .counter("fabric_tunnel_records_received_total", "Verified announcements that came through the tunnel.")
      .add();
  const Receipt receipt{.from = self_, .instance = instance_, .owner = taken->owner, .counter = taken->counter};
  // Whoever gets no receipt sends again.
  if (const auto frame = seal_frame(receipt, psks_)) (void)port_.send(datagram.to, datagram.from, *frame);
  if (taken->news) news_();
}

void TunnelRecords::take(const Receipt& receipt, const Datagram& datagram) {
  // A receipt is not signed. The policies of the tunnel let an address of a cluster in by that cluster's SAs only, so
  // one cluster cannot confirm in the name of another.
  const auto* target = schedule_.target(receipt.from);
  if (target == nullptr || target->address != datagram.from || receipt.owner != self_)
    return refuse(to_string(crypto::Reject::foreign_gateway));
  schedule_.note(receipt);
}

void TunnelRecords::refuse(std::string_view reason) {
  rejected_records(runtime_.metrics, reason).add();
}

}  // namespace fabric::gateway
