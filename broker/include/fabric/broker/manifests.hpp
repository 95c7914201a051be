#pragma once

#include <fabric/api/core.hpp>
#include <fabric/broker/broker_info.hpp>
#include <fabric/broker/join.hpp>
#include <fabric/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What the broker's operator applies, as objects for server-side apply. Pure.
namespace fabric::broker {

/// The Fabric that asked for the broker; every object carries it as labels.
struct FabricRef {
  std::string ns{};
  std::string name{};
};

struct GlobalnetOptions {
  std::string cidr_range{};
  std::uint64_t cluster_size = 0;
};

/// The CustomResourceDefinitions of submariner.io, from crd/submariner.yaml.
std::vector<json::Value> submariner_crds();

/// Namespace, accounts, roles, admission policies and the token Secret of the joining account (the API server fills the
/// token in), in the order in which they have to be applied. Without the CRDs, the PSK and broker-info. The joining
/// account may read the answers of these clusters (those that ask or have asked) and nothing else: it outlives a PSK
/// rotation, so it must not read the new PSK in broker-info.
std::vector<json::Value> broker_manifests(const FabricRef& fabric, const std::vector<std::string>& asking = {});

/// The Secret with the PSKs. At the broker it is created when there is none, and changed only under its
/// resourceVersion.
json::Value psk_secret(const FabricRef& fabric, std::string_view ns, const crypto::PskBundle& psk);
/// What such a Secret holds. Errc::invalid names Secret, key and remedy.
Result<crypto::PskBundle> read_psk_secret(const api::SecretObject& secret);

/// ConfigMap submariner-globalnet-info in Submariner's form. Without `clusterinfo`, which belongs to whoever allocates.
json::Value globalnet_info(const FabricRef& fabric, const GlobalnetOptions& options);

/// ConfigMap submariner-broker-info.
json::Value broker_info_config_map(const FabricRef& fabric, const BrokerInfo& info);

/// What a member gets: ServiceAccount, token Secret, the rights of all members, and those to read its own answer, in
/// which new PSKs come.
std::vector<json::Value> member_manifests(std::string_view cluster_id);

/// ConfigMap fabric-join-<id> or fabric-member-<id> with this data.
json::Value join_request_config_map(std::string_view cluster_id, const ConfigData& data);
json::Value member_answer_config_map(std::string_view cluster_id, const ConfigData& data);

}  // namespace fabric::broker
