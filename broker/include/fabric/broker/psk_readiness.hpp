#pragma once

#include <fabric/api/submariner.hpp>
#include <fabric/crypto/record.hpp>

#include <map>
#include <string>
#include <vector>

/// Whether the previous PSK of a rotation can be dropped. Pure.
namespace fabric::broker {

enum class PskUse : std::uint8_t {
  ready,    ///< Everything that it announces proves itself with the newest PSK alone.
  waiting,  ///< `why` says what does not yet.
  away,     ///< It has joined, but has no unexpired Endpoint: nothing of it would break.
};

struct MemberPskUse {
  std::string cluster_id;
  PskUse use = PskUse::waiting;
  std::string why;  ///< Names object, what is wrong with it, and nothing secret.
};

/// One entry for each Cluster, by id. `newest` holds the newest PSK only: what verifies with it goes on verifying once
/// peers hold nothing else. A cluster is ready when its identity and, for every Endpoint of it that has not expired,
/// the state record and every key record verify; so no SA of an older generation is left, either. `identities` are
/// those pinned when the cluster joined. Endpoints of nobody who has joined do not count: peers refuse them, too.
std::vector<MemberPskUse> psk_use(const crypto::PskSet& newest, const std::vector<api::Cluster>& clusters,
                                  const std::vector<api::Endpoint>& endpoints,
                                  const std::map<std::string, crypto::Ed25519Public>& identities, TimePoint now);

}  // namespace fabric::broker
