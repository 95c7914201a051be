#include <fabric/api/names.hpp>
#include <fabric/broker/manifests.hpp>
#include <fabric/broker/names.hpp>
#include <fabric/broker/psk_delivery.hpp>
#include <fabric/operator/join_role.hpp>
#include <fabric/operator/psk_rotation.hpp>
#include <fabric/telemetry/log.hpp>

#include "broker_errors.hpp"

/// What makes this cluster a member: its identity, its access to the broker, and the PSKs.
namespace fabric::operators {
namespace {

namespace names = api::names;

constexpr std::size_t kKeySize = 32;                   // X25519 and Ed25519 private halves
constexpr std::string_view kClusterKey = "clusterID";  // in Secret submariner-broker-secret: whom the token is for
constexpr Duration kLookAgain{5'000};                  // until there is something to watch; no request is made
constexpr Duration kWatchAgain{10'000};                // after a watch that failed

}  // namespace

/// Absent when this cluster has not joined that broker under this id.
Task<Result<std::optional<BrokerAccess>>> JoinRole::read_access(const std::string& id, const broker::BrokerInfo& info) {
  FABRIC_CO_TRY(const auto stored,
                if_exists(co_await env_.client.get<api::SecretObject>({env_.ns, std::string(names::kBrokerSecret)})));
  if (!stored) co_return std::optional<BrokerAccess>();
  const auto text = [&](std::string_view key) {
    const Secret* found = stored->find(key);
    return found == nullptr ? std::string() : std::string(found->reveal_text());
  };
  const bool fits = text(names::kBrokerUrlKey) == info.url && text(names::kCaKey) == info.client.ca_pem &&
                    text(names::kNamespaceKey) == info.client.ns && text(kClusterKey) == id;
  if (!fits) co_return std::optional<BrokerAccess>();
  co_return std::optional(
      BrokerAccess{info.url, info.client.ca_pem, info.client.ns, Secret::from_text(text(names::kTokenKey))});
}

Task<Result<JoinRole::Member>> JoinRole::read_member(const std::string& id, const broker::BrokerInfo& info) {
  Member member;
  FABRIC_CO_TRY(member.access, co_await read_access(id, info));
  member.psk = info.psk.duplicate();
  FABRIC_CO_TRY(const auto secret,
                if_exists(co_await env_.client.get<api::SecretObject>({env_.ns, std::string(names::kPskSecret)})));
  if (secret) {
    // One that cannot be read is written anew, since broker-info has what it takes.
    if (auto held = broker::read_psk_secret(*secret)) {
      const bool adopted = adopts(*held, info.psk, member.access.has_value());
      member.stored = !adopted || held->equals(member.psk);
      if (!adopted) member.psk = *std::move(held);
    }
  }
  FABRIC_CO_TRY(Secret seed, co_await read_or_create_secret(env_.client, {env_.ns, std::string(names::kIdentitySecret)},
                                                            std::string(names::kIdentityKey), [this] {
                                                              return crypto::draw_secret(env_.entropy, kKeySize);
                                                            }));
  FABRIC_CO_TRY(member.identity,
                crypto::Ed25519KeyPair::from_seed(std::move(seed))
                    .with(fmt::format("Secret {}/{}: key {}", env_.ns, names::kIdentitySecret, names::kIdentityKey)));
  co_return member;
}

/// One write of all keys, so that no reader sees a number without its PSK.
Task<Result<void>> JoinRole::store_psk(Member& member) {
  if (member.stored) co_return Result<void>();
  FABRIC_CO_CHECK(co_await apply_object(env_.client, broker::psk_secret({}, env_.ns, member.psk)));
  member.stored = true;
  co_return Result<void>();
}

Task<Result<std::optional<crypto::X25519KeyPair>>> JoinRole::read_join_key() {
  const kube::ObjectKey key{env_.ns, std::string(names::kJoinSecret)};
  FABRIC_CO_TRY(auto private_key, if_exists(co_await read_secret(env_.client, key, std::string(names::kJoinKey))));
  if (!private_key) co_return std::optional<crypto::X25519KeyPair>();
  FABRIC_CO_TRY(auto pair, crypto::X25519KeyPair::from_private(*std::move(private_key))
                               .with(fmt::format("Secret {}: key {}", key, names::kJoinKey)));
  co_return std::optional(std::move(pair));
}

Task<Result<BrokerAccess>> JoinRole::member_access(const api::JoinSettings& settings, const broker::BrokerInfo& info,
                                                   Member& member) {
  const std::string id = settings.cluster_id.value();
  FABRIC_CO_TRY(const auto join_key, co_await read_join_key());
  // Without the join key no new PSK could be opened: a member that has lost it asks for an answer to another one.
  if (join_key && member.access && !member.access->token.empty()) co_return member.access->duplicate();
  FABRIC_CO_TRY(BrokerAccess access, co_await ask_to_join(id, info, member));
  FABRIC_CO_CHECK(co_await store_access(id, access));
  co_return access;
}

/// Errc::conflict while the broker has not answered.
Task<Result<BrokerAccess>> JoinRole::ask_to_join(const std::string& id, const broker::BrokerInfo& info,
                                                 Member& member) {
  const kube::ObjectKey join_secret{env_.ns, std::string(names::kJoinSecret)};
  FABRIC_CO_TRY(Secret private_key,
                co_await read_or_create_secret(env_.client, join_secret, std::string(names::kJoinKey),
                                               [this] { return crypto::draw_secret(env_.entropy, kKeySize); }));
  FABRIC_CO_TRY(const auto reply_key, crypto::X25519KeyPair::from_private(std::move(private_key))
                                          .with(fmt::format("Secret {}: key {}", join_secret, names::kJoinKey)));
  auto connected = broker_client({info.url, info.client.ca_pem, info.client.ns, info.client.token.duplicate()});
  if (!connected) co_return std::unexpected(about_broker(std::move(connected).error(), info, "connecting"));
  kube::Client* client = *connected;
  // Whoever has not asked yet may not read an answer: then only asking shows whether the token is good.
  auto answer = optional_source(co_await client->get<api::ConfigMap>({info.client.ns, broker::member_answer_name(id)}));
  if (!answer)
    co_return std::unexpected(about_broker(std::move(answer).error(), info, "reading the answer to our join request"));
  const broker::ConfigData found = *answer ? (*answer)->data : broker::ConfigData();
  if (broker::answers(found, reply_key.public_key)) {
    FABRIC_CO_TRY(auto followed, broker::follow_psks(member.psk, id, reply_key, found));
    member.stored = member.stored && followed.equals(member.psk);
    member.psk = std::move(followed);
  }
  FABRIC_CO_TRY(const crypto::PskSet psks, crypto::make_psk_set(member.psk));
  FABRIC_CO_TRY(const auto read, broker::read_member_answer(psks, id, reply_key, found));
  switch (read.state) {
    case broker::MemberAnswer::State::accepted:
      co_return BrokerAccess{info.url, info.client.ca_pem, info.client.ns, read.token.duplicate()};
    case broker::MemberAnswer::State::refused:
      // Another key asks anew, so that the refusal is not taken for the answer to the next attempt.
      ignore(co_await env_.client.remove<api::SecretObject>(join_secret), "the next reconcile reads the same refusal");
      co_return fail(Errc::invalid, "broker {} refused cluster '{}': {}{}", info.url, id, read.reason,
                     member.psk.number > info.psk.number
                         ? fmt::format("; this cluster holds PSK {} and broker-info PSK {}: if the broker was made "
                                       "anew, delete Secret {}/{} as well",
                                       member.psk.number, info.psk.number, env_.ns, names::kPskSecret)
                         : "");
    case broker::MemberAnswer::State::waiting:
      break;
  }
  const auto data = broker::make_join_request(*psks.newest(), id, reply_key.public_key, member.identity.public_key);
  json::Value request = broker::join_request_config_map(id, data);
  request["metadata"]["namespace"] = info.client.ns;
  auto created = co_await client->create(kube::resource_of<api::ConfigMap>(), std::move(request));
  if (!created && created.error().code != Errc::already_exists && created.error().code != Errc::conflict) {
    co_return std::unexpected(about_broker(std::move(created).error(), info, "asking to join"));
  }
  co_return fail(Errc::conflict,
                 "cluster '{}' has asked broker {} to join and waits for the answer; if it does not come, check that "
                 "fabric-operator runs in the broker cluster",
                 id, info.url);
}

Task<Result<void>> JoinRole::store_access(std::string id, const BrokerAccess& access) {
  std::map<std::string, Secret, std::less<>> data;
  if (!access.token.empty()) data.emplace(names::kTokenKey, access.token.duplicate());
  data.emplace(names::kCaKey, Secret::from_text(access.ca_pem));
  data.emplace(names::kNamespaceKey, Secret::from_text(access.ns));
  data.emplace(names::kBrokerUrlKey, Secret::from_text(access.url));
  data.emplace(kClusterKey, Secret::from_text(id));
  co_return co_await apply_object(env_.client, secret_manifest({env_.ns, std::string(names::kBrokerSecret)}, data));
}

/// Of a token that is not valid any more. Which broker it was for stays known, so that an old copy of its broker-info
/// is not taken for another one's. A new join key makes sure that the old answer is not read again.
Task<Result<void>> JoinRole::forget_access(std::string id, const BrokerAccess& access) {
  BrokerAccess without = access.duplicate();
  without.token = Secret();
  FABRIC_CO_CHECK(co_await store_access(std::move(id), without));
  following_.reset();
  answer_.reset();
  const auto removed = co_await env_.client.remove<api::SecretObject>({env_.ns, std::string(names::kJoinSecret)});
  if (!removed && removed.error().code != Errc::not_found) co_return std::unexpected(removed.error());
  co_return Result<void>();
}

Task<Result<void>> JoinRole::follow_broker(const std::string& id, const BrokerAccess& access, Member& member) {
  FABRIC_CO_TRY(auto connection, broker_connection(access));
  const Following following{connection, {access.ns, broker::member_answer_name(id)}};
  if (following_ != following) {
    following_ = following;
    answer_.reset();
  }
  if (!answer_) {
    auto found = if_exists(co_await connection->client->get<api::ConfigMap>(following.answer));
    if (!found && found.error().code == Errc::unauthorized)
      published_.reset();  // publishing finds out, and joins again
    if (!found) co_return std::unexpected(std::move(found).error().with("reading new PSKs at the broker"));
    answer_ = *found ? (*found)->data : broker::ConfigData();
  }
  FABRIC_CO_TRY(const auto join_key, co_await read_join_key());
  if (!join_key) co_return fail(Errc::conflict, "Secret {}/{} has gone: it is drawn anew", env_.ns, names::kJoinSecret);
  auto followed = broker::follow_psks(member.psk, id, *join_key, *answer_);
  if (!followed) {
    answer_.reset();  // the broker may have mended it
    co_return std::unexpected(std::move(followed).error());
  }
  if (!followed->equals(member.psk)) {
    log::info("PSKs changed", {{"number", followed->number}, {"valid", followed->previous ? 2 : 1}});
    member.psk = *std::move(followed);
    member.stored = false;
  }
  co_return Result<void>();
}

Task<Result<void>> JoinRole::watch_broker(std::function<void()> wake) {
  while (true) {
    if (!following_) {
      FABRIC_CO_CHECK(co_await async::sleep_for(env_.clock, kLookAgain));
      continue;
    }
    const auto ended = co_await watch_answer(*following_, wake);
    if (!ended && ended.error().code == Errc::cancelled) co_return ended;
    if (!ended) {
      log::warn("the watch of our answer at the broker ended", {{"error", ended.error().message()}});
      answer_.reset();  // what was missed is read by the next reconcile
      if (ended.error().code == Errc::unauthorized) published_.reset();
      wake();
    }
    FABRIC_CO_CHECK(co_await async::sleep_for(env_.clock, ended ? kLookAgain : kWatchAgain));
  }
}

Task<Result<void>> JoinRole::watch_answer(Following following, std::function<void()> wake) {
  const auto saw = [&](broker::ConfigData data) {
    if (following_ != following || answer_ == data) return;
    answer_ = std::move(data);
    wake();
  };
  kube::Client& client = *following.connection->client;
  const kube::Selection only{following.answer.ns, {}, fmt::format("metadata.name={}", following.answer.name)};
  FABRIC_CO_TRY(auto list, co_await client.list<api::ConfigMap>(only));
  saw(list.items.empty() ? broker::ConfigData() : std::move(list.items.front().data));
  FABRIC_CO_TRY(const auto stream,
                co_await client.watch(kube::resource_of<api::ConfigMap>(), only, {list.resource_version}));
  while (true) {
    FABRIC_CO_TRY(const auto events, co_await stream->read());
    if (events.empty() || following_ != following) co_return Result<void>();
    for (const kube::WatchEvent& event : events) {
      if (event.type == kube::WatchType::bookmark) continue;
      if (event.type == kube::WatchType::deleted) {
        saw({});
        continue;
      }
      FABRIC_CO_TRY(api::ConfigMap object, api::from_object<api::ConfigMap>(event.object));
      saw(std::move(object.data));
    }
  }
}

}  // namespace fabric::operators
