#include <fabric/api/identity.hpp>
#include <fabric/api/names.hpp>
#include <fabric/gateway/membership.hpp>

namespace fabric::gateway {

namespace {

/// For people, of a peer whose Endpoint was never seen; plan_copies() puts the verified values over it.
api::EndpointSpec described_by(const crypto::StateRecord& record, const net::IpAddress& cable_address) {
  api::EndpointSpec spec;
  spec.cluster_id = record.owner.cluster;
  spec.hostname = record.owner.gateway;
  spec.cable_name = api::cable_name(api::ClusterId(record.owner.cluster), cable_address);
  spec.private_ip = cable_address.to_string();
  spec.nat_enabled = record.nat;
  spec.backend = api::names::kXfrmBackend;
  for (const auto& prefix : record.prefixes)
    spec.subnets.push_back(prefix.to_string());
  return spec;
}

}  // namespace

crypto::Checked<Membership::Taken> Membership::take(const RawAnnouncement& raw, TimePoint now) {
  const auto claimed = crypto::decode_state_record(raw.state);
  if (!claimed) return std::unexpected(claimed.error());
  const crypto::GatewayId& owner = claimed->owner;
  if (owner.cluster == own_cluster_) return std::unexpected(crypto::Reject::foreign_gateway);
  // The address names its Endpoint.
  if (claimed->private_addresses.empty()) return std::unexpected(crypto::Reject::malformed);
  const auto known = peers_.find(owner);
  const std::optional<Peer> before = known == peers_.end() ? std::nullopt : std::optional(known->second);
  const auto accepted = accept(peers_, raw, psks_, expected_of(owner, now));
  if (!accepted && (accepted.error() != crypto::Reject::stale_generation || !before))
    return std::unexpected(accepted.error());
  auto& peer = peers_.at(owner);
  const auto& record = peer.state.record;
  Taken taken{.owner = owner, .counter = record.counter, .news = !before || before->state != peer.state};
  // Something new is a sign of life, also of a gateway whose object somebody deleted.
  if (!taken.news) peer.deleted = before->deleted;
  if (taken.news) {
    const auto& cable_address = record.private_addresses.front();
    auto& described = specs_[owner];
    described.name = api::endpoint_name(api::ClusterId(owner.cluster), cable_address);
    if (described.spec.cluster_id.empty()) described.spec = described_by(record, cable_address);
  }
  return taken;
}

}  // namespace fabric::gateway
