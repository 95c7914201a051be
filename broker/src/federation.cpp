#include <fabric/broker/federation.hpp>
#include <fabric/broker/names.hpp>

#include <fmt/format.h>

namespace fabric::broker {
namespace {

struct Announced {
  net::Cidr prefix;
  std::string_view kind;
  std::string_view field;
};

std::vector<Announced> announced_by(const ClusterRecord& cluster) {
  std::vector<Announced> out;
  if (!cluster.global.empty()) {
    for (const net::Cidr& prefix : cluster.global)
      out.push_back({prefix, "global", "joinConfig.globalnetCIDR"});
    return out;
  }
  for (const net::Cidr& prefix : cluster.pods)
    out.push_back({prefix, "pod", "joinConfig.clusterCIDR"});
  for (const net::Cidr& prefix : cluster.services)
    out.push_back({prefix, "service", "joinConfig.serviceCIDR"});
  return out;
}

}  // namespace

IdentityProof prove_identity(const crypto::Psk& psk, std::string_view cluster_id,
                             const crypto::Ed25519Public& identity) {
  return {crypto::to_base64(identity), crypto::to_base64(crypto::identity_mac(psk, cluster_id, identity))};
}

IdentityProof prove_identity(const crypto::PskSet& psks, std::string_view cluster_id,
                             const crypto::Ed25519Public& identity) {
  return {crypto::to_base64(identity), crypto::identity_macs(psks, cluster_id, identity)};
}

Result<crypto::Ed25519Public> verify_identity(const crypto::PskSet& psks, std::string_view cluster_id,
                                              const IdentityProof& proof) {
  if (proof.identity.empty() || proof.mac.empty()) {
    return fail(Errc::invalid, "Cluster {}: annotation {} is missing: it has not joined with Fabric", cluster_id,
                proof.identity.empty() ? names::kIdentityAnnotation : names::kIdentityMacAnnotation);
  }
  FABRIC_TRY(const auto identity,
             crypto::ed25519_public_from_base64(proof.identity)
                 .with(fmt::format("Cluster {}: annotation {}", cluster_id, names::kIdentityAnnotation)));
  if (!crypto::check_identity_macs(psks, cluster_id, identity, proof.mac)) {
    return fail(Errc::invalid,
                "Cluster {}: annotation {} was not made with this federation's PSK: let that cluster join again",
                cluster_id, names::kIdentityMacAnnotation);
  }
  return identity;
}

std::vector<OverlapFinding> check_overlaps(const ClusterRecord& self, const std::vector<ClusterRecord>& others) {
  std::vector<OverlapFinding> findings;
  const std::vector<Announced> own = announced_by(self);
  for (const ClusterRecord& other : others) {
    if (other.cluster_id == self.cluster_id) continue;
    for (const Announced& theirs : announced_by(other)) {
      for (const Announced& ours : own) {
        if (!ours.prefix.overlaps(theirs.prefix)) continue;
        findings.push_back(
            {other.cluster_id, ours.prefix, theirs.prefix,
             fmt::format("{} prefix {} of cluster '{}' ({}) overlaps {} prefix {} of cluster '{}': enable globalnet in "
                         "both clusters or give one of them another prefix",
                         ours.kind, ours.prefix, self.cluster_id, ours.field, theirs.kind, theirs.prefix,
                         other.cluster_id)});
      }
    }
  }
  return findings;
}

}  // namespace fabric::broker
