#pragma once

#include <fabric/crypto/psk.hpp>
#include <fabric/net/cidr.hpp>

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Rules about the clusters of a federation. Pure.
namespace fabric::broker {

/// A Cluster record (submariner.io/v1) in values.
struct ClusterRecord {
  std::string cluster_id;
  std::vector<net::Cidr> pods;
  std::vector<net::Cidr> services;
  std::vector<net::Cidr> global;  ///< With globalnet the pod and service prefixes may overlap others'.
};

/// The two annotations of a Cluster that bind its identity to its id.
struct IdentityProof {
  std::string identity;  ///< Base64 of the Ed25519 public key.
  std::string mac;       ///< crypto::identity_macs.
  bool operator==(const IdentityProof&) const = default;
};

/// With a MAC for each PSK of the set.
IdentityProof prove_identity(const crypto::PskSet& psks, std::string_view cluster_id,
                             const crypto::Ed25519Public& identity);
IdentityProof prove_identity(const crypto::Psk& psk, std::string_view cluster_id,
                             const crypto::Ed25519Public& identity);

/// The identity that a Cluster object announces. Errc::invalid when a part is missing or was not made with the PSK.
Result<crypto::Ed25519Public> verify_identity(const crypto::PskSet& psks, std::string_view cluster_id,
                                              const IdentityProof& proof);

/// Two prefixes of two clusters that share addresses.
struct OverlapFinding {
  std::string other_cluster;
  net::Cidr own;
  net::Cidr other;
  std::string message;  ///< Names both clusters, both prefixes, both fields and the remedy.
};

/// Every overlap of `self` with the others, in the order of `others`. With a global prefix only that one counts, since
/// only it is announced. A record with the id of `self` is skipped.
std::vector<OverlapFinding> check_overlaps(const ClusterRecord& self, const std::vector<ClusterRecord>& others);

}  // namespace fabric::broker
