#include <fabric/api/identity.hpp>
#include <fabric/broker/join.hpp>
#include <fabric/broker/names.hpp>

#include <algorithm>

namespace fabric::broker {
namespace {

constexpr std::string_view kAction = "action";
constexpr std::string_view kLeave = "leave";
constexpr std::string_view kClusterId = "clusterID";
constexpr std::string_view kPublicKey = "publicKey";
constexpr std::string_view kIdentity = "identity";
constexpr std::string_view kMac = "mac";
constexpr std::string_view kSignature = "signature";
constexpr std::string_view kSealedToken = "sealedToken";
constexpr std::string_view kRefusedKey = "refusedKey";
constexpr std::string_view kRefusedReason = "refusedReason";
constexpr std::size_t kMaxSealed = std::size_t{64} << 10U;  // service account tokens are about 1 KiB

std::string seal_context(std::string_view cluster_id) {
  return fmt::format("fabric/v1 member-token {}", cluster_id);
}

/// What the MAC of an answer covers. Cluster ids hold no line feed and base64 neither, so that the text is unambiguous.
std::string answer_text(std::string_view cluster_id, std::string_view key, std::string_view identity,
                        std::string_view sealed) {
  return fmt::format("fabric/v1 member-answer\n{}\n{}\n{}\n{}", cluster_id, key, identity, sealed);
}

std::string leave_text(std::string_view cluster_id, std::string_view identity) {
  return fmt::format("fabric/v1 leave\n{}\n{}", cluster_id, identity);
}

std::string_view at(const ConfigData& data, std::string_view key) {
  const auto found = data.find(key);
  return found == data.end() ? std::string_view() : std::string_view(found->second);
}

bool mac_matches(const crypto::PskSet& psks, std::string_view message, crypto::ByteView mac) {
  for (const crypto::PskId& id : psks.ids()) {
    const crypto::Psk* psk = psks.find(id);
    if (psk != nullptr && psk->check(crypto::view_of(message), mac)) return true;
  }
  return false;
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
  const auto mac = crypto::from_base64(at(data, kMac), sizeof(crypto::Digest));
  if (!mac || !mac_matches(psks, text, *mac)) return refuse("mac is not of this federation's PSK");
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
    const auto mac = crypto::from_base64(at(answer, kMac), sizeof(crypto::Digest));
    if (!mac || !mac_matches(psks, covered, *mac)) {
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
