#include <fabric/broker/federation.hpp>
#include <fabric/broker/psk_delivery.hpp>
#include <fabric/crypto/record.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>

#include "clusters.hpp"

namespace fabric::operators {
namespace {

using namespace fabric::operators::testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

crypto::PskSet psks_of(const crypto::PskBundle& bundle) {
  return *crypto::make_psk_set(bundle);
}

/// The gateway agent of a member, as far as the broker sees it: announces with the PSKs of its mounted Secret.
class Gateway {
 public:
  Gateway(async::TestLoop& loop, Hub& hub, Member& member) : loop_(loop), hub_(hub), member_(member) {}

  void announce() {
    const crypto::PskBundle bundle = member_.bundle();
    const crypto::PskSet psks = psks_of(bundle);
    crypto::KeyRecord key;
    key.cluster_set = "fabric";
    key.owner = owner();
    key.instance = *crypto::draw_instance(entropy_);
    key.generation = crypto::Generation(++generation_);
    key.public_key = crypto::X25519KeyPair::draw(entropy_)->public_key;
    key.suites = {1};
    key.not_after = loop_.clock().now() + std::chrono::hours(24);
    crypto::StateRecord state;
    state.cluster_set = "fabric";
    state.owner = owner();
    state.instance = key.instance;
    state.counter = generation_;
    const auto identity = own_identity();
    api::Endpoint endpoint;
    endpoint.metadata.ns = names::kBrokerNamespace;
    endpoint.metadata.name = member_.id() + "-cable";
    endpoint.spec.cluster_id = member_.id();
    endpoint.spec.hostname = owner().gateway;
    endpoint.spec.backend_config = {
        {std::string(names::kKeysConfig), crypto::to_base64(crypto::sign(key, psks, identity)->bytes)},
        {std::string(names::kStateConfig), crypto::to_base64(crypto::sign(state, psks, identity)->bytes)}};
    hub_.server.put(endpoint);
    loaded_ = bundle.duplicate();
  }

  /// Whether this one, with the PSKs that it has loaded, knows the other by what stands at the broker.
  bool knows(const Gateway& other) const {
    const auto cluster = *hub_.server.find<api::Cluster>(Hub::key(other.member_.id()));
    const auto endpoint = *hub_.server.find<api::Endpoint>(Hub::key(other.member_.id() + "-cable"));
    const auto psks = psks_of(loaded_);
    const auto identity = broker::verify_identity(psks, other.member_.id(),
                                                  {*cluster.metadata.annotation(names::kIdentityAnnotation),
                                                   *cluster.metadata.annotation(names::kIdentityMacAnnotation)});
    if (!identity) return false;
    const crypto::GatewayId owner = other.owner();
    const crypto::Expected expected{
        .cluster_set = "fabric", .owner = &owner, .identity = &*identity, .now = loop_.clock().now()};
    const auto& config = endpoint.spec.backend_config;
    return crypto::verify_key_record(*crypto::from_base64(config.find(names::kKeysConfig)->second), psks, expected) &&
           crypto::verify_state_record(*crypto::from_base64(config.find(names::kStateConfig)->second), psks, expected);
  }

 private:
  crypto::GatewayId owner() const { return {member_.id(), member_.id() + "-n1"}; }

  crypto::Ed25519KeyPair own_identity() const {
    const auto secret = member_.server.find<api::SecretObject>(Member::key(names::kIdentitySecret));
    return *crypto::Ed25519KeyPair::from_seed(secret->find(names::kIdentityKey)->duplicate());
  }

  async::TestLoop& loop_;
  Hub& hub_;
  Member& member_;
  crypto::DeterministicEntropy entropy_{99};
  crypto::PskBundle loaded_;
  std::uint64_t generation_ = 0;
};

/// Three joined clusters with a gateway each, all on PSK 1.
class Rotation : public Roles {
 protected:
  Rotation() {
    hub.settle();
    for (Member* member : {&a, &b, &c}) {
      member->copy_info();
      EXPECT_EQ(find(member->join(), kJoined)->state, StepState::done);
      member->watch();
    }
    for (Gateway& gateway : gateways)
      gateway.announce();
    static_cast<void>(hub.reconcile());
    note_psk();
  }

  void ask_for(std::int64_t number) { hub.spec().spec.broker_config->psk_number = number; }

  /// A number never has two PSKs.
  void note_psk() {
    const crypto::PskBundle bundle = hub.bundle();
    const auto [known, fresh] = drawn.emplace(bundle.number, crypto::to_base64(bundle.psk.reveal()));
    EXPECT_EQ(known->second, crypto::to_base64(bundle.psk.reveal())) << "PSK " << bundle.number << " was drawn twice";
  }

  void expect_connected() {
    for (const Gateway& one : gateways) {
      for (const Gateway& other : gateways)
        EXPECT_TRUE(&one == &other || one.knows(other)) << &one - gateways.data() << " " << &other - gateways.data();
    }
    note_psk();
  }

  RoleOutcome broker() {
    RoleOutcome outcome = hub.reconcile();
    expect_connected();
    return outcome;
  }

  RoleOutcome operate(Member& member) {
    RoleOutcome outcome = member.reconcile();
    expect_connected();
    return outcome;
  }

  void announce(std::size_t which) {
    gateways[which].announce();
    expect_connected();
  }

  /// Everybody once, in this order of members.
  void round(std::array<std::size_t, 3> order) {
    static_cast<void>(broker());
    for (const std::size_t which : order) {
      static_cast<void>(operate(*members[which]));
      announce(which);
    }
  }

  bool is_done(std::uint32_t number) {
    const auto alone = [&](const crypto::PskBundle& bundle) {
      return bundle.number == number && !bundle.previous && bundle.psk.equals(hub.bundle().psk);
    };
    return alone(hub.bundle()) && std::ranges::all_of(members, [&](Member* each) { return alone(each->bundle()); });
  }

  Member a{loop, hub, "a", "10.1.0.0/24", 1};
  Member b{loop, hub, "b", "10.2.0.0/24", 2};
  Member c{loop, hub, "c", "10.3.0.0/24", 3};
  std::array<Member*, 3> members{&a, &b, &c};
  std::array<Gateway, 3> gateways{Gateway{loop, hub, a}, Gateway{loop, hub, b}, Gateway{loop, hub, c}};
  std::map<std::uint32_t, std::string> drawn;
};

TEST_F(Rotation, ReachesEveryMemberStepByStepAndNeverDropsEarly) {
  EXPECT_EQ(hub.status.psk_rotation->phase, api::PskPhase::done);
  ask_for(2);
  const int woken = a.woken;
  const RoleOutcome drawn_now = broker();
  EXPECT_THAT(drawn_now.events, ElementsAre(HasSubstr("PSK 2 was drawn")));
  EXPECT_GT(drawn_now.requeue, Duration::zero());
  EXPECT_THAT(hub.status.psk_rotation->waiting_for, ElementsAre("a", "b", "c"));
  EXPECT_EQ(hub.status.psk_ids.size(), 2U);
  EXPECT_GT(a.woken, woken) << "the watch brings the new PSK";

  const RoleOutcome received = operate(a);
  EXPECT_THAT(received.events, Contains(HasSubstr("PSK 2 came from the broker")));
  EXPECT_EQ(find(received, kPskCurrent)->reason, "Rotating");
  EXPECT_EQ(a.bundle().number, 2U);
  EXPECT_TRUE(a.bundle().previous);
  EXPECT_EQ(a.status.psk_ids.size(), 2U);
  static_cast<void>(operate(b));
  static_cast<void>(operate(c));
  static_cast<void>(broker());
  EXPECT_THAT(hub.status.psk_rotation->waiting_for, ElementsAre("a", "b", "c")) << "the gateways have not loaded it";

  announce(0);
  announce(1);
  for (int i = 0; i < 50; ++i) {
    loop.advance(std::chrono::minutes(20));
    const RoleOutcome waiting = broker();
    ASSERT_TRUE(hub.bundle().previous);
    ASSERT_THAT(find(waiting, kPskRotated)->message, HasSubstr("waiting for 'c' (Endpoint c-cable: a key record does"));
  }
  EXPECT_EQ(hub.status.psk_rotation->members_ready, 2);
  announce(2);
  EXPECT_THAT(broker().events, ElementsAre(HasSubstr("PSK 1 is not valid any more")));
  EXPECT_FALSE(hub.bundle().previous);
  static_cast<void>(broker());
  EXPECT_EQ(hub.status.psk_rotation->phase, api::PskPhase::done);
  for (const std::size_t which : {2U, 0U, 1U}) {
    EXPECT_THAT(operate(*members[which]).events, Contains(HasSubstr("PSK 1 is not valid any more")));
    announce(which);
  }
  EXPECT_TRUE(is_done(2));
}

TEST_F(Rotation, EndsInAnyOrderOfClusters) {
  std::uint32_t number = 1;
  std::array<std::size_t, 3> order{0, 1, 2};
  do {
    ask_for(++number);
    for (int i = 0; i < 3; ++i)
      round(order);
    EXPECT_TRUE(is_done(number)) << order[0] << order[1] << order[2];
  } while (std::ranges::next_permutation(order).found);
}

TEST_F(Rotation, DrawsOnceInAThousandReconciles) {
  ask_for(2);
  for (int i = 0; i < 1000; ++i) {
    static_cast<void>(hub.reconcile());
    if (i == 300) {
      for (std::size_t which = 0; which < 3; ++which) {
        static_cast<void>(operate(*members[which]));
        announce(which);
      }
    }
    note_psk();
  }
  EXPECT_EQ(hub.bundle().number, 2U);
  EXPECT_FALSE(hub.bundle().previous);
  EXPECT_EQ(drawn.size(), 2U);
}

TEST_F(Rotation, GoesOnAfterEveryWriteThatMayFail) {
  std::uint32_t number = 1;
  int failing = 0;
  for (bool failed = true; failed; ++failing) {
    // The n-th write to either API server answers 503, once before it is done and once after.
    for (const bool done_first : {false, true}) {
      failed = false;
      int writes = 0;
      std::list<std::optional<Result<http::Response>>> late;  // what a write that was done answers to nobody
      const auto disturb = [&](kube::fake::FakeApiServer& server) {
        server.intercept([&, done_first](const http::Request& request) -> std::optional<Result<http::Response>> {
          const auto names_any = [&](auto... parts) {
            return ((request.url.target.find(parts) != std::string::npos) || ...);
          };
          // Of what a rotation changes; the rest of a reconcile has tests of its own.
          if (request.method == http::Method::get || !names_any("/secrets/", "/configmaps/", "/clusters/") ||
              writes++ != failing) {
            return std::nullopt;
          }
          failed = true;
          if (done_first) loop.start(server.send(request, async::Deadline::never()), late.emplace_back());
          http::Response response;
          response.status = 503;
          return Result<http::Response>(response);
        });
      };
      disturb(hub.server);
      for (Member* member : members)
        disturb(member->server);
      ask_for(++number);
      for (int i = 0; i < 4; ++i) {
        static_cast<void>(hub.reconcile());
        loop.settle();
        note_psk();
        for (std::size_t which = 0; which < 3; ++which) {
          static_cast<void>(members[which]->reconcile());
          loop.settle();
          announce(which);
        }
      }
      ASSERT_TRUE(is_done(number)) << "write " << failing << (done_first ? " after" : " before");
    }
    hub.server.intercept({});
    for (Member* member : members)
      member->server.intercept({});
  }
  EXPECT_GT(failing, 20);
}

TEST_F(Rotation, IsNotStartedTwiceByTwoThatReadTheSame) {
  ask_for(2);
  bool raced = false;
  hub.server.intercept([&](const http::Request& request) -> std::optional<Result<http::Response>> {
    const bool patch = request.method == http::Method::patch &&
                       request.url.target.find("secrets/submariner-ipsec-psk") != std::string::npos;
    if (!patch || raced) return std::nullopt;
    raced = true;
    crypto::PskBundle other = hub.bundle();
    other.previous = std::move(other.psk);
    other.psk = Secret::from_text(std::string(48, 'x'));
    other.number = 2;
    hub.server.put(kube::resource_of<api::SecretObject>(), broker::psk_secret({}, names::kBrokerNamespace, other));
    return std::nullopt;
  });
  EXPECT_EQ(find(hub.reconcile(), kBrokerReady)->state, StepState::failing);
  ASSERT_TRUE(raced);
  EXPECT_EQ(hub.bundle().psk.reveal_text(), std::string(48, 'x'));
  static_cast<void>(hub.reconcile());
  EXPECT_EQ(hub.bundle().number, 2U);
  EXPECT_EQ(hub.bundle().psk.reveal_text(), std::string(48, 'x'));
}

TEST_F(Rotation, RestoresADeletedSecretInTheMiddle) {
  ask_for(2);
  static_cast<void>(broker());
  static_cast<void>(operate(a));
  const crypto::PskBundle before = hub.bundle();
  hub.server.erase(kube::resource_of<api::SecretObject>(), Hub::key(names::kPskSecret));
  a.server.erase(kube::resource_of<api::SecretObject>(), Member::key(names::kPskSecret));
  static_cast<void>(broker());
  EXPECT_TRUE(hub.bundle().equals(before));
  static_cast<void>(operate(a));
  EXPECT_TRUE(a.bundle().equals(before)) << "from the old broker-info and the broker's answer";
  for (int i = 0; i < 3; ++i)
    round({0, 1, 2});
  EXPECT_TRUE(is_done(2));
}

TEST_F(Rotation, DoesNotWaitForAMemberThatIsAwayAndItComesBackByItself) {
  for (std::uint32_t number = 2; number <= 4; ++number) {
    ask_for(number);
    static_cast<void>(hub.reconcile());
    loop.advance(std::chrono::hours(25));
    for (int i = 0; i < 3; ++i) {
      for (const std::size_t which : {0U, 1U}) {
        static_cast<void>(members[which]->reconcile());
        gateways[which].announce();
      }
      const RoleOutcome outcome = hub.reconcile();
      if (i == 0) {
        EXPECT_TRUE(hub.status.psk_rotation->waiting_for.empty());
        EXPECT_THAT(find(outcome, kPskRotated)->message, HasSubstr("not waiting for 'c'"));
      }
    }
    EXPECT_FALSE(hub.bundle().previous);
  }
  EXPECT_EQ(c.bundle().number, 1U);
  EXPECT_THAT(c.reconcile().events, Contains(HasSubstr("PSK 4 came from the broker")));
  gateways[2].announce();
  EXPECT_TRUE(is_done(4));
  expect_connected();
}

TEST_F(Rotation, RefusesNumbersThatDoNotFollow) {
  const std::tuple<std::int64_t, std::string_view> rows[] = {
      {3, "spec.brokerConfig.pskNumber 3: PSK 1 is current"},
      {100, "set 2 to rotate, or 1 to leave it"},
  };
  for (const auto& [number, says] : rows) {
    ask_for(number);
    const RoleOutcome outcome = broker();
    EXPECT_EQ(find(outcome, kPskRotated)->state, StepState::stalled);
    EXPECT_THAT(find(outcome, kPskRotated)->message, HasSubstr(std::string(says)));
    EXPECT_EQ(hub.bundle().number, 1U);
  }
  ask_for(2);
  static_cast<void>(broker());
  ask_for(3);
  EXPECT_THAT(find(broker(), kPskRotated)->message, HasSubstr("the rotation to PSK 2 still runs"));
  ask_for(1);
  EXPECT_EQ(find(broker(), kPskRotated)->state, StepState::stalled);
  EXPECT_EQ(hub.bundle().number, 2U);
  for (int i = 0; i < 3; ++i)
    round({0, 1, 2});
  EXPECT_TRUE(is_done(2)) << "a refused number does not stop the rotation that runs";
  EXPECT_EQ(find(broker(), kPskRotated)->state, StepState::stalled);
}

TEST_F(Rotation, LetsNobodyJoinWithAnOldBrokerInfo) {
  Member d(loop, hub, "d", "10.4.0.0/24", 4);
  d.copy_info();
  ask_for(2);
  static_cast<void>(broker());
  const auto ask = [&] {
    static_cast<void>(d.reconcile());
    static_cast<void>(hub.reconcile());
    return d.reconcile();
  };
  const RoleOutcome refused = ask();
  EXPECT_EQ(last(refused).state, StepState::stalled);
  EXPECT_THAT(last(refused).message, HasSubstr("is being replaced by PSK 2"));
  EXPECT_THAT(last(refused).message, HasSubstr("copy ConfigMap submariner-broker-info"));
  Member e(loop, hub, "e", "10.5.0.0/24", 5);
  e.copy_info();
  EXPECT_EQ(find(e.join(), kJoined)->state, StepState::done) << "with a fresh copy, while the rotation runs";
  EXPECT_TRUE(e.bundle().equals(hub.bundle()));
  for (int i = 0; i < 3; ++i)
    round({0, 1, 2});
  EXPECT_FALSE(hub.bundle().previous);
  const RoleOutcome late = ask();
  EXPECT_EQ(last(late).state, StepState::stalled);
  EXPECT_THAT(last(late).message, HasSubstr("mac is not of this federation's PSK: copy ConfigMap"));
  d.copy_info();
  EXPECT_EQ(find(d.join(), kJoined)->state, StepState::done);
}

TEST_F(Rotation, AForgedPskIsRefusedAndTheMemberWorksOn) {
  ask_for(2);
  static_cast<void>(broker());
  const crypto::PskBundle before = b.bundle();
  api::ConfigMap answer = *hub.server.find<api::ConfigMap>(Hub::key("fabric-member-b"));
  const std::string good = answer.data.at("psk-2");
  answer.data["psk-2"] = hub.server.find<api::ConfigMap>(Hub::key("fabric-member-c"))->data.at("psk-2");
  hub.server.put(answer);
  loop.settle();
  const RoleOutcome refused = operate(b);
  EXPECT_EQ(find(refused, kPskCurrent)->state, StepState::stalled);
  EXPECT_THAT(find(refused, kPskCurrent)->message, HasSubstr("psk-2 was not made by a holder of PSK 1: it is refused"));
  EXPECT_EQ(find(refused, kJoined)->state, StepState::done);
  EXPECT_TRUE(b.bundle().equals(before));
  for (int i = 0; i < 3; ++i)
    round({0, 1, 2});
  EXPECT_TRUE(is_done(2)) << "the broker writes it anew";
}

TEST_F(Rotation, WaitsForAMemberWhoseAnswerCannotBeVouchedFor) {
  api::ConfigMap answer = *hub.server.find<api::ConfigMap>(Hub::key("fabric-member-b"));
  answer.data["publicKey"] = answer.data.at("identity");
  hub.server.put(answer);
  ask_for(2);
  for (int i = 0; i < 3; ++i)
    round({0, 1, 2});
  EXPECT_THAT(hub.status.psk_rotation->waiting_for, ElementsAre("b"));
  EXPECT_THAT(find(broker(), kPskRotated)->message, HasSubstr("its join key may be anybody's"));
  EXPECT_TRUE(hub.bundle().previous);
}

TEST_F(Rotation, AMemberThatLostItsJoinKeyAsksForAnAnswerToAnotherOne) {
  c.server.erase(kube::resource_of<api::SecretObject>(), Member::key(names::kJoinSecret));
  EXPECT_EQ(find(c.join(), kJoined)->state, StepState::done);
  ask_for(2);
  for (int i = 0; i < 3; ++i)
    round({0, 1, 2});
  EXPECT_TRUE(is_done(2));
}

TEST_F(Rotation, DoesNotRestartTheGateways) {
  const auto pods = [&] {
    return json::write(*a.server.find(kube::resource_of<api::DaemonSet>(), Member::key(names::kGatewayName))
                            ->at({"spec", "template"}));
  };
  const std::string before = pods();
  ask_for(2);
  for (int i = 0; i < 3; ++i)
    round({0, 1, 2});
  EXPECT_TRUE(is_done(2));
  EXPECT_EQ(pods(), before);
}

TEST_F(Rotation, ShowsNoPskInAnyStatus) {
  ask_for(2);
  round({0, 1, 2});
  for (const crypto::PskBundle& bundle : {hub.bundle()}) {
    const std::string newest = json::encode_base64(bundle.psk.reveal());
    EXPECT_THAT(json::encode(hub.status), ::testing::Not(HasSubstr(newest)));
    EXPECT_THAT(json::encode(a.status), ::testing::Not(HasSubstr(newest)));
    const auto answer = hub.server.find<api::ConfigMap>(Hub::key("fabric-member-a"));
    EXPECT_THAT(json::encode(*answer), ::testing::Not(HasSubstr(newest)));
  }
}

TEST_F(Rotation, AFirstPskTakesTheNumberThatIsAskedFor) {
  Hub other(loop);
  other.spec().spec.broker_config->psk_number = 7;
  other.settle();
  EXPECT_EQ(other.bundle().number, 7U);
  EXPECT_EQ(other.status.psk_rotation->phase, api::PskPhase::done);
}

}  // namespace
}  // namespace fabric::operators
