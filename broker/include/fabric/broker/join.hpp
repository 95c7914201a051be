#pragma once

#include <fabric/base/error.hpp>
#include <fabric/crypto/psk.hpp>
#include <fabric/crypto/seal.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>

/// How a cluster becomes a member without anybody handing out an administrator's token.
///
///   member                                   broker
///   fabric-join-<id>: id, X25519 key,  ───▶  MAC by the PSK right? id free, or of this identity?
///     Ed25519 identity, MAC                  ServiceAccount cluster-<id>, token, RoleBinding
///   open with the X25519 key           ◀───  fabric-member-<id>: token sealed to that key, MAC
///
/// The broker deletes a request once it has answered it, so that a member which lost its key may ask again. A refusal
/// never replaces what an earlier, accepted request left: it stands beside it, bound to the refused key.
namespace fabric::broker {

/// The data of a ConfigMap.
using ConfigData = std::map<std::string, std::string, std::less<>>;

enum class JoinKind { join, leave };

struct JoinRequest {
  JoinKind kind = JoinKind::join;
  std::string cluster_id;
  crypto::X25519Public reply_key;
  crypto::Ed25519Public identity;
};

/// The data of ConfigMap fabric-join-<id>.
ConfigData make_join_request(const crypto::Psk& psk, std::string_view cluster_id, const crypto::X25519Public& reply_key,
                             const crypto::Ed25519Public& identity);
/// A member that leaves asks the broker to forget it; signed by its identity.
ConfigData make_leave_request(const crypto::Psk& psk, std::string_view cluster_id,
                              const crypto::Ed25519KeyPair& identity);

/// Why a request was not granted. `text` is for the member's condition: object, what is wrong, remedy.
struct Refusal {
  std::string text;
  /// The key that asked, when it could be read: who holds it may see the refusal as an answer to it.
  std::optional<crypto::X25519Public> reply_key;
};

/// What the broker does about a request.
struct JoinDecision {
  std::optional<JoinRequest> granted;
  std::optional<Refusal> refused;  ///< Exactly one of the two.
};

/// `object_name` is the ConfigMap's name, which must be fabric-join-<id>. `pinned` is the identity that joined as this
/// id before: another one is refused. Only the newest PSK lets a cluster join: a rotation shuts out whoever was left
/// out of it from its first moment. Leaving takes any PSK of the set.
JoinDecision verify_join_request(const crypto::PskSet& psks, std::string_view object_name, const ConfigData& data,
                                 const std::optional<crypto::Ed25519Public>& pinned);

/// The data of ConfigMap fabric-member-<id>: identity, the key that was answered, sealed token, MAC by the PSK.
Result<ConfigData> make_member_answer(crypto::Entropy& entropy, const crypto::Psk& psk, const JoinRequest& request,
                                      const Secret& token);
/// Adds a refusal to what is there (`existing` may be empty).
ConfigData with_refusal(ConfigData existing, const Refusal& refusal);

/// The identity that an answer pins, if it holds an accepted one.
std::optional<crypto::Ed25519Public> pinned_identity(const ConfigData& answer);
/// Whether the answer already answers this key, so that the broker need not seal again.
bool answers(const ConfigData& answer, const crypto::X25519Public& reply_key);

/// What a member reads in the answer.
struct MemberAnswer {
  enum class State {
    waiting,   ///< Nothing for our key yet.
    accepted,  ///< `token` is ours.
    refused,   ///< `reason` says why.
  };
  State state = State::waiting;
  Secret token;
  std::string reason;
};

/// Errc::invalid for an answer to our key that does not open or whose MAC is wrong. `psks` are those that
/// follow_psks() leads to, since an answer is MACed anew with each rotation.
Result<MemberAnswer> read_member_answer(const crypto::PskSet& psks, std::string_view cluster_id,
                                        const crypto::X25519KeyPair& reply_key, const ConfigData& answer);

}  // namespace fabric::broker
