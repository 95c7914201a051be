#pragma once

#include <fabric/api/fabric.hpp>
#include <fabric/api/names.hpp>
#include <fabric/api/submariner.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

/// Objects as a cluster shows them; a test changes what it is about.
namespace fabric::ctl::test {

inline const TimePoint kNow{std::chrono::seconds(1'700'000'000)};

inline api::Condition condition(std::string type, api::ConditionStatus status, std::string reason,
                                std::string message) {
  api::Condition out;
  out.type = std::move(type);
  out.status = status;
  out.reason = std::move(reason);
  out.message = std::move(message);
  out.last_transition_time = kNow - std::chrono::minutes(5);
  return out;
}

inline api::Fabric fabric(std::string name) {
  api::Fabric out;
  out.metadata.ns = "default";
  out.metadata.name = std::move(name);
  out.metadata.generation = 2;
  out.status.observed_generation = 2;
  out.status.conditions = {condition("Ready", api::ConditionStatus::yes, "Ready", "everything is in place")};
  return out;
}

inline api::Fabric broker(std::int64_t psk_number = 1) {
  api::Fabric out = fabric("hub");
  out.spec.broker_config.emplace();
  out.status.psk_rotation.emplace().number = psk_number;
  return out;
}

/// A broker that waits for clusters until it may drop the previous PSK.
inline api::Fabric rotating_broker(std::int64_t psk_number, std::vector<std::string> waiting_for) {
  api::Fabric out = broker(psk_number);
  out.spec.broker_config->psk_number = psk_number;
  api::PskRotationStatus& status = *out.status.psk_rotation;
  status.phase = api::PskPhase::rotating;
  status.members_total = 3;
  status.members_ready = 3 - static_cast<std::int64_t>(waiting_for.size());
  status.waiting_for = std::move(waiting_for);
  return out;
}

inline api::Fabric member() {
  api::Fabric out = fabric("join");
  out.spec.join_config.emplace().cluster_id = "east";
  out.status.cluster_id = "east";
  out.status.broker_url = "https://192.0.2.1:6443";
  out.status.cluster_cidrs = {{"10.1.0.0/16", "Node spec.podCIDRs"}, {"fd01::/48", "spec.joinConfig.clusterCIDR"}};
  out.status.service_cidrs = {{"10.101.0.0/16", "ServiceCIDR kubernetes"}};
  out.status.psk_ids = {"1:0123456789abcdef"};
  out.status.connection_summary = "1/2";
  return out;
}

inline api::Connection connection(std::string cluster, api::ConnectionStatus status) {
  api::Connection out;
  out.endpoint.cluster_id = std::move(cluster);
  out.endpoint.hostname = "gw";
  out.status = status;
  out.using_ip = "203.0.113.7";
  return out;
}

inline api::KeyGeneration generation(std::string name, std::chrono::minutes age, std::string reason = "age") {
  api::KeyGeneration out;
  out.generation = std::move(name);
  out.drawn_at = kNow - age;
  out.reason = std::move(reason);
  out.psk_ids = {"1:0123456789abcdef"};
  return out;
}

inline api::Gateway gateway(std::string node, std::vector<api::KeyGeneration> generations = {}) {
  api::Gateway out;
  out.metadata.ns = std::string(api::names::kOperatorNamespace);
  out.metadata.name = std::move(node);
  out.status.version = "0.1.0";
  out.status.ha_status = api::HaStatus::active;
  out.status.local_endpoint.cluster_id = "east";
  out.status.local_endpoint.private_ip = "192.0.2.11";
  if (!generations.empty()) out.status.keys.emplace().generations = std::move(generations);
  return out;
}

}  // namespace fabric::ctl::test
