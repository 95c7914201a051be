#include <fabric/api/identity.hpp>
#include <fabric/api/names.hpp>
#include <fabric/gateway/announcer.hpp>
#include <fabric/telemetry/log.hpp>

#include <algorithm>

namespace fabric::gateway {

namespace names = api::names;

namespace {

kube::ApplyOptions as_gateway() {
  return {.field_manager = std::string(names::kGatewayManager), .force = true};
}

std::string first_text(const std::vector<net::IpAddress>& addresses) {
  return addresses.empty() ? "" : addresses.front().to_string();
}

}  // namespace

Result<Announcement> Announcer::build(const Publication& publication, const Situation& situation) {
  if (situation.private_addresses.empty()) return fail(Errc::unavailable, "Node '{}' has no InternalIP", options_.node);
  crypto::StateRecord record{.private_addresses = situation.private_addresses,
                             .public_addresses = situation.public_addresses,
                             .nat = situation.nat,
                             .leaving = situation.leaving,
                             .natt_port = options_.natt_port,
                             .health_check = situation.health_check,
                             .seen = {publication.seen.begin(), publication.seen.end()}};
  std::ranges::copy(situation.service_prefixes, std::back_inserter(record.prefixes));
  std::ranges::copy(situation.pod_prefixes, std::back_inserter(record.prefixes));
  api::Endpoint endpoint;
  for (const auto& prefix : record.prefixes)
    endpoint.spec.subnets.push_back(prefix.to_string());
  FABRIC_TRY(auto state, ring_.sign_state(std::move(record)));
  auto keys = ring_.records(publication.generations);
  const api::ClusterId cluster(options_.cluster_id);
  const auto& cable_address = situation.private_addresses.front();
  endpoint.metadata.name = api::endpoint_name(cluster, cable_address);
  endpoint.spec.cluster_id = options_.cluster_id;
  endpoint.spec.cable_name = api::cable_name(cluster, cable_address);
  endpoint.spec.health_check_ip = first_text(situation.health_check);
  endpoint.spec.hostname = options_.node;
  endpoint.spec.private_ip = cable_address.to_string();
  endpoint.spec.public_ip = first_text(situation.public_addresses);
  endpoint.spec.nat_enabled = situation.nat;
  endpoint.spec.backend = names::kXfrmBackend;
  for (auto& [key, value] : write_backend_config(keys, state))
    endpoint.spec.backend_config[key] = value;
  endpoint.spec.backend_config[std::string(names::kUdpPortConfig)] = fmt::format("{}", options_.natt_port);
  endpoint.spec.backend_config[std::string(names::kPreferredServerConfig)] =
      options_.preferred_server ? "true" : "false";
  return Announcement{.publication = publication,
                      .situation = situation,
                      .keys = std::move(keys),
                      .state = std::move(state),
                      .endpoint = std::move(endpoint)};
}

Result<void> Announcer::word(const Publication& publication, const Situation& situation) {
  if (worded_ && worded_->publication == publication && worded_->situation == situation) return {};
  FABRIC_TRY(auto announcement, build(publication, situation));
  worded_ = std::make_shared<const Announcement>(std::move(announcement));
  return {};
}

bool Announcer::note_left() {
  return worded_ && note_published(*worded_);
}

/// False for what is no news any more.
bool Announcer::note_published(const Announcement& said) {
  if (said.state.record.counter <= published_counter_) return false;
  published_ = said.publication;
  situation_ = said.situation;
  published_counter_ = said.state.record.counter;
  local_due_ = true;
  return true;
}

std::set<crypto::Generation> Announcer::tunnel_only() const {
  std::set<crypto::Generation> result;
  if (published_) result.insert(published_->generations.begin(), published_->generations.end());
  if (at_broker_) {
    for (const auto generation : at_broker_->generations)
      result.erase(generation);
  }
  return result;
}

async::Task<Result<void>> Announcer::publish(Publication publication, Situation situation) {
  FABRIC_CO_CHECK(word(publication, situation));
  const auto said = worded_;
  note_published(*said);
  api::Endpoint at_broker = said->endpoint;
  at_broker.metadata.ns = broker_namespace_;
  at_broker.metadata.labels[std::string(names::kClusterIdLabel)] = options_.cluster_id;
  const auto written = co_await broker_.apply(std::move(at_broker), as_gateway());
  if (!written) co_return Result<void>(std::unexpected(written.error())).with("publishing the Endpoint at the broker");
  at_broker_ = said->publication;
  broker_counter_ = said->state.record.counter;
  local_due_ = true;
  co_return Result<void>();
}

async::Task<Result<void>> Announcer::write_local() {
  if (!worded_) co_return Result<void>();
  api::Endpoint endpoint = worded_->endpoint;
  endpoint.metadata.ns = options_.ns;
  local_due_ = false;
  const auto written = co_await local_.apply(std::move(endpoint), as_gateway());
  if (written) co_return Result<void>();
  local_due_ = true;
  co_return Result<void>(std::unexpected(written.error())).with("writing the local Endpoint");
}

}  // namespace fabric::gateway
