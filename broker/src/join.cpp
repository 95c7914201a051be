#include <fabric/api/identity.hpp>
#include <fabric/broker/join.hpp>
#include <fabric/broker/names.hpp>

#include <algorithm>

#include "member_answer.hpp"

namespace fabric::broker {
namespace {

constexpr std::string_view kAction = "action";
constexpr std::string_view kLeave = "leave";
constexpr std::string_view kSignature = "signature";
constexpr std::string_view kRefusedKey = "refusedKey";
constexpr std::string_view kRefusedReason = "refusedReason";
constexpr std::size_t kMaxSealed = std::size_t{64} << 10U;  // service account tokens are about 1 KiB

std::string seal_context(std::string_view cluster_id) {
  return fmt::format("fabric/v1 member-token {}", cluster_id);
}

std::string leave_text(std::string_view cluster_id, std::string_view identity) {
  return fmt::format("fabric/v1 leave\n{}\n{}", cluster_id, identity);
}

bool signature_matches(const crypto::Ed25519Public& identity, std::string_view message, std::string_view base64) {
  const auto bytes = crypto::from_base64(base64, sizeof(crypto::Signature));
  crypto::Signature signature{};
  if (!bytes || bytes->size() != signature.size()) return false;
  std::ranges::copy(*bytes, signature.begin());
  return crypto::ed25519_verify(identity, crypto::view_of(message), signature);
}

/// Collects what a refusal needs while the request is checked.
struct Refuser {
  std::string_view object_name;
  std::optional<crypto::X25519Public> reply_key;

  JoinDecision operator()(std::string_view what) const {
    return {std::nullopt,
            Refusal{fmt::format("ConfigMap {}/{}: {}", names::kBrokerNamespace, object_name, what), reply_key}};
  }
};

JoinDecision verify_leave(const crypto::PskSet& psks, const ConfigData& data, JoinRequest request,
                          const Refuser& refuse, const std::optional<crypto::Ed25519Public>& pinned) {
  const std::string text = leave_text(request.cluster_id, at(data, kIdentity));
  if (!mac_matches(psks, text, at(data, kMac))) return refuse("mac is not of this federation's PSK");
  if (!pinned || *pinned != request.identity)
    return refuse("the cluster that wants to leave is not the one that joined");
  if (!signature_matches(*pinned, text, at(data, kSignature))) return refuse("signature is wrong");
  request.kind = JoinKind::leave;
  return {std::move(request), std::nullopt};
}

}  // namespace

ConfigData make_join_request(const crypto::Psk& psk, std::string_view cluster_id, const crypto::X25519Public& reply_key,
                             const crypto::Ed25519Public& identity) {
  return {{std::string(kClusterId), std::string(cluster_id)},
          {std::string(kPublicKey), crypto::to_base64(reply_key)},
          {std::string(kIdentity), crypto::to_base64(identity)},
          {std::string(kMac), crypto::to_base64(crypto::join_request_mac(psk, cluster_id, reply_key, identity))}};
}

ConfigData make_leave_request(const crypto::Psk& psk, std::string_view cluster_id,
                              const crypto::Ed25519KeyPair& identity) {
  const std::string public_key = crypto::to_base64(identity.public_key);
  const std::string text = leave_text(cluster_id, public_key);
  return {{std::string(kAction), std::string(kLeave)},
          {std::string(kClusterId), std::string(cluster_id)},
          {std::string(kIdentity), public_key},
          {std::string(kMac), crypto::to_base64(psk.mac(crypto::view_of(text)))},
          {std::string(kSignature), crypto::to_base64(crypto::ed25519_sign(identity, crypto::view_of(text)))}};
}

JoinDecision verify_join_request(const crypto::PskSet& psks, std::string_view object_name, const ConfigData& data,
                                 const std::optional<crypto::Ed25519Public>& pinned) {
  Refuser refuse{object_name, std::nullopt};
  JoinRequest request;
  request.cluster_id = at(data, kClusterId);
  if (auto id = api::parse_cluster_id(request.cluster_id); !id) {
    return refuse(fmt::format("clusterID: {}", id.error().message()));
  }
  if (object_name != join_request_name(request.cluster_id)) {
    return refuse(fmt::format("clusterID '{}' belongs into ConfigMap {}", request.cluster_id,
                              join_request_name(request.cluster_id)));
  }
  const auto identity = crypto::ed25519_public_from_base64(at(data, kIdentity));
  if (!identity) return refuse(fmt::format("identity: {}", identity.error().message()));
  request.identity = *identity;
  if (at(data, kAction) == kLeave) return verify_leave(psks, data, std::move(request), refuse, pinned);

  const auto reply_key = crypto::x25519_public_from_base64(at(data, kPublicKey));
  if (!reply_key) return refuse(fmt::format("publicKey: {}", reply_key.error().message()));
  request.reply_key = *reply_key;
  refuse.reply_key = *reply_key;
  const auto mac = crypto::from_base64(at(data, kMac), sizeof(crypto::Digest));
  if (!mac || !crypto::check_join_request_mac(psks, request.cluster_id, *reply_key, *identity, *mac)) {
    return refuse(
        "mac is not of this federation's PSK: copy ConfigMap submariner-broker-info from the broker cluster again");
  }
  if (!constant_time_equal(crypto::join_request_mac(*psks.newest(), request.cluster_id, *reply_key, *identity), *mac)) {
    return refuse(fmt::format(
        "mac is of a PSK that is being replaced by PSK {}, with which nobody can join any more: copy ConfigMap "
        "submariner-broker-info from the broker cluster again",
        psks.newest()->id().number));
  }
  if (pinned && *pinned != *identity) {
    return refuse(fmt::format(
        "cluster id '{}' is taken by a cluster with another identity: choose another joinConfig.clusterID, or, if "
        "that cluster is gone, delete ConfigMap {}/{} at the broker",
        request.cluster_id, names::kBrokerNamespace, member_answer_name(request.cluster_id)));
  }
  return {std::move(request), std::nullopt};
}

Result<ConfigData> make_member_answer(crypto::Entropy& entropy, const crypto::Psk& psk, const JoinRequest& request,
                                      const Secret& token) {
  FABRIC_TRY(const crypto::Bytes sealed,
             crypto::seal_to(entropy, request.reply_key, seal_context(request.cluster_id), token.reveal()));
  const std::string key = crypto::to_base64(request.reply_key);
  const std::string identity = crypto::to_base64(request.identity);
  const std::string sealed_text = crypto::to_base64(sealed);
  const std::string covered = answer_text(request.cluster_id, key, identity, sealed_text);
  return ConfigData{{std::string(kClusterId), request.cluster_id},
                    {std::string(kPublicKey), key},
                    {std::string(kIdentity), identity},
                    {std::string(kSealedToken), sealed_text},
                    {std::string(kMac), crypto::to_base64(psk.mac(crypto::view_of(covered)))}};
}

ConfigData with_refusal(ConfigData existing, const Refusal& refusal) {
  existing.insert_or_assign(std::string(kRefusedReason), refusal.text);
  existing.insert_or_assign(std::string(kRefusedKey), refusal.reply_key ? crypto::to_base64(*refusal.reply_key) : "");
  return existing;
}

std::optional<crypto::Ed25519Public> pinned_identity(const ConfigData& answer) {
  if (at(answer, kSealedToken).empty()) return std::nullopt;
  auto identity = crypto::ed25519_public_from_base64(at(answer, kIdentity));
  if (!identity) return std::nullopt;
  return *identity;
}

bool answers(const ConfigData& answer, const crypto::X25519Public& reply_key) {
  return !at(answer, kSealedToken).empty() && at(answer, kPublicKey) == crypto::to_base64(reply_key);
}

Result<MemberAnswer> read_member_answer(const crypto::PskSet& psks, std::string_view cluster_id,
                                        const crypto::X25519KeyPair& reply_key, const ConfigData& answer) {
  MemberAnswer read;
  if (answers(answer, reply_key.public_key)) {
    const std::string name =
        fmt::format("ConfigMap {}/{} at the broker", names::kBrokerNamespace, member_answer_name(cluster_id));
    const std::string covered =
        answer_text(cluster_id, at(answer, kPublicKey), at(answer, kIdentity), at(answer, kSealedToken));
    if (!mac_matches(psks, covered, at(answer, kMac))) {
      return fail(Errc::invalid, "{}: mac is not of this federation's PSK: delete it there to be answered anew", name);
    }
    FABRIC_TRY(const crypto::Bytes sealed,
               crypto::from_base64(at(answer, kSealedToken), kMaxSealed).with(name + ": sealedToken"));
    FABRIC_TRY(read.token,
               crypto::open_sealed(reply_key, seal_context(cluster_id), sealed).with(name + ": sealedToken"));
    read.state = MemberAnswer::State::accepted;
  } else if (at(answer, kRefusedKey) == crypto::to_base64(reply_key.public_key)) {
    read.state = MemberAnswer::State::refused;
    read.reason = at(answer, kRefusedReason);
  }
  return read;
}

}  // namespace fabric::broker
