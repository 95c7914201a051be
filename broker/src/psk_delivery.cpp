#include <fabric/broker/names.hpp>
#include <fabric/broker/psk_delivery.hpp>

#include <charconv>

#include "member_answer.hpp"

namespace fabric::broker {
namespace {

constexpr std::string_view kStepPrefix = "psk-";
constexpr std::string_view kNumber = "pskNumber";
constexpr std::string_view kValid = "pskValid";
constexpr std::string_view kStateMac = "pskMac";
constexpr std::string_view kOne = "1";
constexpr std::string_view kTwo = "2";
constexpr std::size_t kMaxSealedPsk = 1024;

std::string step_key(std::uint32_t number) {
  return fmt::format("{}{}", kStepPrefix, number);
}

std::string step_context(std::string_view cluster_id, std::uint32_t number) {
  return fmt::format("fabric/v1 member-psk {} {}", cluster_id, number);
}

/// What the MAC of a step covers; the join key is part of it, so that a step cannot be moved to another one.
std::string step_text(std::string_view cluster_id, std::uint32_t number, std::string_view key,
                      std::string_view sealed) {
  return fmt::format("fabric/v1 psk-step\n{}\n{}\n{}\n{}", cluster_id, number, key, sealed);
}

std::string state_text(std::string_view cluster_id, std::string_view number, std::string_view valid) {
  return fmt::format("fabric/v1 psk-state\n{}\n{}\n{}", cluster_id, number, valid);
}

/// A step is "<sealed>.<mac>".
struct Step {
  std::string_view sealed;
  std::string_view mac;
};

Step step_of(std::string_view text) {
  const auto dot = text.find('.');
  if (dot == std::string_view::npos) return {};
  return {text.substr(0, dot), text.substr(dot + 1)};
}

Result<crypto::Psk> psk_of(std::uint32_t number, const Secret& psk) {
  return crypto::Psk::make(number, psk);
}

Result<void> add_step(crypto::Entropy& entropy, const crypto::PskBundle& bundle, std::string_view cluster_id,
                      ConfigData& answer) {
  FABRIC_TRY(const auto before, psk_of(bundle.number - 1, *bundle.previous));
  const std::string_view key = at(answer, kPublicKey);
  const Step there = step_of(at(answer, step_key(bundle.number)));
  if (made_by(before, step_text(cluster_id, bundle.number, key, there.sealed), there.mac)) return {};
  FABRIC_TRY(const auto recipient, crypto::x25519_public_from_base64(key));
  FABRIC_TRY(const auto sealed,
             crypto::seal_to(entropy, recipient, step_context(cluster_id, bundle.number), bundle.psk.reveal()));
  const std::string text = crypto::to_base64(sealed);
  const std::string mac = mac_text(before, step_text(cluster_id, bundle.number, key, text));
  answer.insert_or_assign(step_key(bundle.number), fmt::format("{}.{}", text, mac));
  return {};
}

void drop_old_steps(std::uint32_t number, ConfigData& answer) {
  std::erase_if(answer, [&](const auto& entry) {
    if (!entry.first.starts_with(kStepPrefix)) return false;
    const auto step = crypto::parse_psk_number(std::string_view(entry.first).substr(kStepPrefix.size()));
    return step && *step + kKeptPskSteps <= number;
  });
}

/// Where in the answer something is, for errors.
std::string place(std::string_view cluster_id, std::string_view key) {
  return fmt::format("ConfigMap {}/{} at the broker: {}", names::kBrokerNamespace, member_answer_name(cluster_id), key);
}

/// From PSK number-1 to PSK number.
Result<Secret> take_step(std::uint32_t number, const Secret& before, std::string_view cluster_id,
                         const crypto::X25519KeyPair& join_key, const ConfigData& answer) {
  const std::string key = step_key(number);
  const Step step = step_of(at(answer, key));
  if (step.sealed.empty()) {
    return fail(Errc::invalid,
                "{} is missing, so that PSK {} leads nowhere: copy ConfigMap submariner-broker-info from the broker "
                "cluster again",
                place(cluster_id, key), number - 1);
  }
  FABRIC_TRY(const auto held, psk_of(number - 1, before));
  if (!made_by(held, step_text(cluster_id, number, at(answer, kPublicKey), step.sealed), step.mac)) {
    return fail(Errc::invalid, "{} was not made by a holder of PSK {}: it is refused, and PSK {} stays in use",
                place(cluster_id, key), number - 1, number - 1);
  }
  FABRIC_TRY(const auto sealed, crypto::from_base64(step.sealed, kMaxSealedPsk).with(place(cluster_id, key)));
  return crypto::open_sealed(join_key, step_context(cluster_id, number), sealed).with(place(cluster_id, key));
}

}  // namespace

Result<std::optional<ConfigData>> deliver_psks(crypto::Entropy& entropy, const crypto::PskBundle& bundle,
                                               std::string_view cluster_id, const ConfigData& answer) {
  FABRIC_TRY(const auto psks, crypto::make_psk_set(bundle));
  const std::string covered =
      answer_text(cluster_id, at(answer, kPublicKey), at(answer, kIdentity), at(answer, kSealedToken));
  if (!mac_matches(psks, covered, at(answer, kMac))) {
    return fail(Errc::invalid,
                "ConfigMap {}/{}: mac is not of this federation's PSK, so that its join key may be anybody's: delete "
                "the ConfigMap, and cluster '{}' joins again with Secret submariner-broker-secret deleted there",
                names::kBrokerNamespace, member_answer_name(cluster_id), cluster_id);
  }
  ConfigData next = answer;
  if (bundle.previous) FABRIC_CHECK(add_step(entropy, bundle, cluster_id, next));
  drop_old_steps(bundle.number, next);
  const std::string number = std::to_string(bundle.number);
  const std::string valid(bundle.previous ? kTwo : kOne);
  next.insert_or_assign(std::string(kNumber), number);
  next.insert_or_assign(std::string(kValid), valid);
  next.insert_or_assign(std::string(kStateMac), mac_text(*psks.newest(), state_text(cluster_id, number, valid)));
  next.insert_or_assign(std::string(kMac), mac_text(*psks.newest(), covered));
  if (next == answer) return std::optional<ConfigData>();
  return std::optional(std::move(next));
}

Result<crypto::PskBundle> follow_psks(const crypto::PskBundle& held, std::string_view cluster_id,
                                      const crypto::X25519KeyPair& join_key, const ConfigData& answer) {
  if (at(answer, kNumber).empty()) return held.duplicate();
  if (!answers(answer, join_key.public_key)) {
    return fail(Errc::invalid,
                "{} is for another join key: delete Secret {}/{}, and this cluster asks for an answer of its own",
                place(cluster_id, kPublicKey), names::kOperatorNamespace, names::kJoinSecret);
  }
  FABRIC_TRY(const auto number, crypto::parse_psk_number(at(answer, kNumber)).with(place(cluster_id, kNumber)));
  if (number < held.number) {
    return fail(Errc::invalid, "{} {} is older than PSK {}, which this cluster holds: it is refused",
                place(cluster_id, kNumber), number, held.number);
  }
  crypto::PskBundle bundle = held.duplicate();
  while (bundle.number < number) {
    FABRIC_TRY(Secret next, take_step(bundle.number + 1, bundle.psk, cluster_id, join_key, answer));
    bundle.previous = std::move(bundle.psk);
    bundle.psk = std::move(next);
    ++bundle.number;
  }
  FABRIC_TRY(const auto newest, psk_of(bundle.number, bundle.psk));
  const std::string_view valid = at(answer, kValid);
  if (!made_by(newest, state_text(cluster_id, at(answer, kNumber), valid), at(answer, kStateMac))) {
    return fail(Errc::invalid, "{} was not made by a holder of PSK {}: it is refused", place(cluster_id, kStateMac),
                bundle.number);
  }
  // A PSK that was dropped once stays dropped: `held` of the same number without a previous one is left as it is.
  if (valid != kTwo) bundle.previous.reset();
  FABRIC_CHECK(crypto::make_psk_set(bundle).with(place(cluster_id, step_key(number))));
  return bundle;
}

}  // namespace fabric::broker
