#pragma once

#include <fabric/broker/join.hpp>

#include <fmt/format.h>

/// The data of join requests and answers, where two files read it.
namespace fabric::broker {

inline constexpr std::string_view kClusterId = "clusterID";
inline constexpr std::string_view kPublicKey = "publicKey";
inline constexpr std::string_view kIdentity = "identity";
inline constexpr std::string_view kMac = "mac";
inline constexpr std::string_view kSealedToken = "sealedToken";

inline std::string_view at(const ConfigData& data, std::string_view key) {
  const auto found = data.find(key);
  return found == data.end() ? std::string_view() : std::string_view(found->second);
}

/// What the MAC of an answer covers. Cluster ids hold no line feed and base64 neither, so that the text is unambiguous.
inline std::string answer_text(std::string_view cluster_id, std::string_view key, std::string_view identity,
                               std::string_view sealed) {
  return fmt::format("fabric/v1 member-answer\n{}\n{}\n{}\n{}", cluster_id, key, identity, sealed);
}

inline std::string mac_text(const crypto::Psk& psk, std::string_view message) {
  return crypto::to_base64(psk.mac(crypto::view_of(message)));
}

inline bool made_by(const crypto::Psk& psk, std::string_view message, std::string_view mac) {
  const auto bytes = crypto::from_base64(mac, sizeof(crypto::Digest));
  return bytes && psk.check(crypto::view_of(message), *bytes);
}

/// Whether any PSK of the set made it.
inline bool mac_matches(const crypto::PskSet& psks, std::string_view message, std::string_view mac) {
  for (const crypto::PskId& id : psks.ids()) {
    if (made_by(*psks.find(id), message, mac)) return true;
  }
  return false;
}

}  // namespace fabric::broker
