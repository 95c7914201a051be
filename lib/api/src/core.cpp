#include <fabric/api/apps.hpp>
#include <fabric/api/core.hpp>
#include <fabric/api/event.hpp>
#include <fabric/api/lease.hpp>
#include <fabric/api/names.hpp>

namespace fabric::api {

bool is_ready(const Node& node) {
  return is_true(node.status.conditions, kReady);
}

bool is_control_plane(const Node& node) {
  return node.metadata.label(names::kControlPlaneRole) != nullptr || node.metadata.label(names::kMasterRole) != nullptr;
}

bool is_gateway(const Node& node) {
  const std::string* label = node.metadata.label(names::kGatewayLabel);
  return label != nullptr && *label == names::kGatewayLabelValue;
}

std::vector<net::IpAddress> addresses(const Node& node, std::string_view type) {
  std::vector<net::IpAddress> out;
  for (const auto& entry : node.status.addresses) {
    if (entry.type != type) continue;
    if (const auto address = net::IpAddress::parse(entry.address)) out.push_back(*address);
  }
  return out;
}

std::vector<net::Cidr> pod_cidrs(const Node& node) {
  std::vector<net::Cidr> out;
  const auto add = [&](const std::string& text) {
    if (const auto cidr = net::Cidr::parse(text)) out.push_back(*cidr);
  };
  for (const auto& text : node.spec.pod_cidrs)
    add(text);
  if (node.spec.pod_cidrs.empty()) add(node.spec.pod_cidr);
  return out;
}

SecretObject SecretObject::duplicate() const {
  SecretObject out{.metadata = metadata, .type = type, .data = {}};
  for (const auto& [key, secret] : data)
    out.data.emplace(key, secret.duplicate());
  return out;
}

const Secret* SecretObject::find(std::string_view key) const {
  const auto found = data.find(key);
  return found == data.end() ? nullptr : &found->second;
}

bool is_rolled_out(const DaemonSet& daemon_set) {
  const DaemonSetStatus& status = daemon_set.status;
  return status.observed_generation >= daemon_set.metadata.generation &&
         status.updated_number_scheduled >= status.desired_number_scheduled &&
         status.number_ready >= status.desired_number_scheduled;
}

}  // namespace fabric::api

namespace fabric::json {
template struct Codec<api::Node>;
template struct Codec<api::Pod>;
template struct Codec<api::Service>;
template struct Codec<api::ConfigMap>;
template struct Codec<api::SecretObject>;
template struct Codec<api::DaemonSet>;
template struct Codec<api::Deployment>;
template struct Codec<api::Lease>;
template struct Codec<api::Event>;
}  // namespace fabric::json
