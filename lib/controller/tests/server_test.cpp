// Runs below test/controlplane/run, against a real etcd and kube-apiserver.

#include <fabric/api/core.hpp>
#include <fabric/api/event.hpp>
#include <fabric/api/lease.hpp>
#include <fabric/async/testing.hpp>
#include <fabric/controller/informer.hpp>
#include <fabric/controller/lease_elector.hpp>
#include <fabric/http/client.hpp>
#include <fabric/kube/config.hpp>
#include <fabric/kube/events.hpp>
#include <fabric/kube/fake/contract.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

namespace fabric::controller {
namespace {

using kube::fake::config_map;
using kube::fake::kConfigMaps;

constexpr std::chrono::seconds kLimit{60};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  EXPECT_NE(value, nullptr) << name << " is not set: run this program with test/controlplane/run";
  return value == nullptr ? "" : value;
}

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A connection as admin, and a namespace of its own.
class Server {
 public:
  Server() : connection_(open(kube::load_kubeconfig(variable("KUBECONFIG")))) {}

  kube::Client& client() { return *connection_.client; }

  async::TestLoop& loop() { return loop_; }

  async::SystemClock& clock() { return clock_; }

  telemetry::Registry& metrics() { return metrics_; }

  std::string ns() {
    const auto made =
        run(client().create(kube::fake::kNamespaces, json::Object{{"metadata", json::Object{{"generateName", "t-"}}}}));
    EXPECT_TRUE(made) << made.error().message();
    return made ? kube::key_of(*made).name : "";
  }

  bool knows_kinds() const { return true; }

  template <class T>
  Result<T> run(async::Task<Result<T>> task) {
    return loop_.run_blocking(std::move(task));
  }

  /// Runs the loop until the condition holds; false when the limit came first.
  bool run_until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kLimit;
    loop_.io().restart();
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      loop_.io().restart();
      loop_.io().run_one_for(std::chrono::milliseconds(100));
    }
    return true;
  }

  kube::Connection open(Result<kube::Config> config) {
    EXPECT_TRUE(config) << config.error().message();
    auto opened = kube::connect(loop_.executor(), *std::move(config), clock_, metrics_);
    EXPECT_TRUE(opened) << opened.error().message();
    return *std::move(opened);
  }

  /// Compacts etcd at the newest version.
  void forget_the_past() {
    const auto now = run(client().list(kube::fake::kNamespaces, {}));
    ASSERT_TRUE(now) << now.error().message();
    auto etcd = http::Client::open(loop_.executor(), {});
    ASSERT_TRUE(etcd) << etcd.error().message();
    const auto url = http::Url::parse(variable("FABRIC_TEST_ETCD") + "/v3/kv/compaction");
    ASSERT_TRUE(url) << url.error().message();
    const std::string body = json::write(json::Object{{"revision", now->resource_version}, {"physical", true}});
    const auto done =
        run((*etcd)->send({http::Method::post, *url, {{"Content-Type", "application/json"}}, body, nullptr},
                          async::Deadline::after(kLimit)));
    ASSERT_TRUE(done) << done.error().message();
    ASSERT_EQ(done->status, 200) << done->body;
  }

  Runtime runtime(async::Clock& clock) {
    return Runtime{loop_.executor(), clock, [] { return 0.5; }, metrics_};
  }

 private:
  async::TestLoop loop_;
  async::SystemClock clock_{loop_.executor()};
  telemetry::Registry metrics_;
  kube::Connection connection_;
};

}  // namespace
}  // namespace fabric::controller

namespace fabric::kube::fake {
namespace {
INSTANTIATE_TYPED_TEST_SUITE_P(RealServer, ApiContract, controller::Server);
}
}  // namespace fabric::kube::fake

namespace fabric::controller {
namespace {

class RealServer : public testing::Test {
 protected:
  template <class T>
  T get(async::Task<Result<T>> task) {
    auto result = server_.run(std::move(task));
    if (result) return *std::move(result);
    ADD_FAILURE() << result.error().message();
    return T{};
  }

  kube::Client& client() { return server_.client(); }

  /// Repeats a request until its outcome satisfies the condition: for what the server does a moment later.
  template <class T>
  async::Task<Result<T>> eventually(std::function<async::Task<Result<T>>()> request,
                                    std::function<bool(const Result<T>&)> condition) {
    const auto deadline = server_.clock().steady() + kLimit;
    while (true) {
      auto result = co_await request();
      if (condition(result) || server_.clock().steady() >= deadline) co_return result;
      FABRIC_CO_CHECK(co_await async::sleep_for(server_.clock(), Duration{50}));
    }
  }

  std::string token_of(const std::string& account) {
    get(client().create(kube::ResourceId{"", "v1", "ServiceAccount", "serviceaccounts", true},
                        json::Object{{"metadata", json::Object{{"name", account}, {"namespace", ns_}}}}));
    const json::Value body =
        json::Object{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenRequest"}, {"spec", json::Object{}}};
    const kube::ApiRequest request{http::Method::post,
                                   "/api/v1/namespaces/" + ns_ + "/serviceaccounts/" + account + "/token",
                                   {},
                                   "application/json",
                                   json::write(body)};
    return get(client().call(request, "create token")).string_at({"status", "token"});
  }

  kube::Connection as_token(const std::string& token) {
    auto admin = kube::load_kubeconfig(variable("KUBECONFIG"));
    EXPECT_TRUE(admin);
    return server_.open(kube::explicit_config(admin->server, admin->ca_pem, Secret::from_text(token), ns_));
  }

  Server server_;
  const std::string ns_ = server_.ns();
};

TEST_F(RealServer, PagesOverMoreThanFiveHundredObjects) {
  constexpr std::size_t kCount = 520;
  for (std::size_t i = 0; i < kCount; ++i)
    get(client().create(kConfigMaps, config_map(ns_, fmt::format("c{:04}", i))));
  const auto page = get(client().list_page(kConfigMaps, {ns_, "", ""}, {}));
  EXPECT_EQ(page.items.size(), 500U);
  EXPECT_FALSE(page.continue_token.empty());
  const auto all = get(client().list(kConfigMaps, {ns_, "", ""}));
  ASSERT_EQ(all.items.size(), kCount);
  EXPECT_EQ(kube::key_of(all.items.back()).name, "c0519");
}

TEST_F(RealServer, SendsABookmarkBeforeAWatchEnds) {
  const auto listed = get(client().list(kConfigMaps, {ns_, "", ""}));
  auto stream = get(client().watch(kConfigMaps, {ns_, "", ""}, {listed.resource_version, std::chrono::seconds(4)}));
  ASSERT_NE(stream, nullptr);
  get(client().create(kConfigMaps, config_map(server_.ns(), "elsewhere")));
  bool bookmark = false;
  while (true) {
    const auto events = server_.run(stream->read());
    ASSERT_TRUE(events) << events.error().message();
    if (events->empty()) break;
    for (const auto& event : *events) {
      EXPECT_EQ(event.type, kube::WatchType::bookmark);
      bookmark =
          bookmark || std::stoull(kube::resource_version_of(event.object)) > std::stoull(listed.resource_version);
    }
  }
  EXPECT_TRUE(bookmark);
}

/// Asks for the first watch from a version that the server has forgotten.
class StaleOnce final : public ListWatch {
 public:
  StaleOnce(kube::Client& client, std::string ns) : real_(client, kube::fake::kLeases, {std::move(ns), "", ""}) {}

  int lists = 0;
  int watches = 0;

  async::Task<Result<kube::Page>> list_page(kube::PageOptions page) override {
    ++lists;
    return real_.list_page(std::move(page));
  }

  async::Task<Result<std::unique_ptr<kube::WatchStream>>> watch(kube::WatchOptions options) override {
    if (watches++ == 0) options.resource_version = "1";
    return real_.watch(std::move(options));
  }

 private:
  KubeListWatch real_;
};

TEST_F(RealServer, ListsAgainAfterACompaction) {
  get(client().create(kube::fake::kLeases, kube::fake::lease(ns_, "a")));
  server_.forget_the_past();
  auto source = std::make_unique<StaleOnce>(client(), ns_);
  const StaleOnce& counts = *source;
  Informer<api::Lease> informer("leases", std::move(source), server_.runtime(server_.clock()));
  async::TaskGroup group(server_.loop().executor());
  group.spawn("informer", informer.run());
  EXPECT_TRUE(server_.run_until([&] { return counts.watches >= 2; }));
  EXPECT_GE(counts.lists, 2);
  get(client().create(kube::fake::kLeases, kube::fake::lease(ns_, "b")));
  EXPECT_TRUE(server_.run_until([&] { return informer.store().find({ns_, "b"}) != nullptr; }));
  EXPECT_NE(informer.store().find({ns_, "a"}), nullptr);
  group.stop();
  EXPECT_TRUE(server_.run_until([&] { return group.running().empty(); }));
}

TEST_F(RealServer, AnInformerFollowsChanges) {
  Informer<api::ConfigMap> informer(client(), {ns_, "", ""}, server_.runtime(server_.clock()));
  async::TaskGroup group(server_.loop().executor());
  group.spawn("informer", informer.run());
  ASSERT_TRUE(server_.run_until([&] { return informer.store().synced(); }));
  get(client().create(kConfigMaps, config_map(ns_, "a", {{"x", "1"}})));
  EXPECT_TRUE(server_.run_until([&] { return informer.store().find({ns_, "a"}) != nullptr; }));
  get(client().merge_patch(kConfigMaps, {ns_, "a"}, json::Object{{"data", json::Object{{"x", "2"}}}}));
  EXPECT_TRUE(server_.run_until([&] { return informer.store().find({ns_, "a"})->data.at("x") == "2"; }));
  ASSERT_TRUE(server_.run(client().remove(kConfigMaps, {ns_, "a"})));
  EXPECT_TRUE(server_.run_until([&] { return informer.store().find({ns_, "a"}) == nullptr; }));
  group.stop();
  EXPECT_TRUE(server_.run_until([&] { return group.running().empty(); }));
}

TEST_F(RealServer, AServiceAccountMayDoWhatItsRoleAllowsAndNoMore) {
  auto member = as_token(token_of("member"));
  const auto list = [&] { return member.client->list(kConfigMaps, {ns_, "", ""}); };
  const auto refused = server_.run(list());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::forbidden);
  EXPECT_NE(refused.error().message().find("list configmaps in " + ns_), std::string::npos)
      << refused.error().message();
  EXPECT_NE(refused.error().message().find("system:serviceaccount:" + ns_ + ":member"), std::string::npos);

  const json::Value name = json::Object{{"name", "reader"}, {"namespace", ns_}};
  get(client().create(kube::ResourceId{"rbac.authorization.k8s.io", "v1", "Role", "roles", true},
                      json::Object{{"metadata", name},
                                   {"rules", json::array(json::Object{{"apiGroups", json::array("")},
                                                                      {"resources", json::array("configmaps")},
                                                                      {"verbs", json::array("list")}})}}));
  get(client().create(
      kube::ResourceId{"rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", true},
      json::Object{
          {"metadata", name},
          {"roleRef", json::Object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", "reader"}}},
          {"subjects",
           json::array(json::Object{{"kind", "ServiceAccount"}, {"name", "member"}, {"namespace", ns_}})}}));
  using Listed = kube::List<json::Value>;
  const auto allowed =
      server_.run(eventually<Listed>(list, [](const Result<Listed>& result) { return result.has_value(); }));
  EXPECT_TRUE(allowed) << allowed.error().message();
}

TEST_F(RealServer, AnInvalidTokenIsUnauthorized) {
  auto nobody = as_token("not-a-token");
  const auto refused = server_.run(nobody.client->get(kConfigMaps, {ns_, "a"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unauthorized);
  EXPECT_EQ(refused.error().message().find("not-a-token"), std::string::npos);
}

TEST_F(RealServer, AnAuthorityThatDidNotSignTheServerIsRefused) {
  auto config = kube::load_kubeconfig(variable("KUBECONFIG"));
  ASSERT_TRUE(config);
  config->ca_pem = content(variable("FABRIC_TEST_WRONG_CA"));
  ASSERT_FALSE(config->ca_pem.empty());
  auto deceived = server_.open(std::move(config));
  const auto refused = server_.run(deceived.client->get(kConfigMaps, {ns_, "a"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unauthorized) << refused.error().message();
}

TEST_F(RealServer, AnInvalidObjectIsRefusedWithItsField) {
  const auto refused = server_.run(client().create(kConfigMaps, config_map(ns_, "Not A Name")));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid);
  EXPECT_NE(refused.error().message().find("metadata.name"), std::string::npos) << refused.error().message();
}

class RealLease : public RealServer {
 protected:
  /// One candidate: time stands still until the test advances it, requests are real.
  struct Candidate {
    std::unique_ptr<LeaseElector> elector;
    std::unique_ptr<async::TaskGroup> group;
  };

  Candidate candidate(const std::string& identity, bool release) {
    LeaseOptions options;
    options.identity = identity;
    options.release_on_cancel = release;
    auto elector = LeaseElector::open(client(), {ns_, "lock"}, options, server_.runtime(server_.loop().clock()));
    EXPECT_TRUE(elector) << elector.error().message();
    Candidate out{*std::move(elector), std::make_unique<async::TaskGroup>(server_.loop().executor())};
    out.group->spawn(identity, out.elector->run());
    return out;
  }

  void stop(Candidate& candidate) {
    candidate.group->stop();
    EXPECT_TRUE(server_.run_until([&] { return candidate.group->running().empty(); }));
  }

  /// Advances the time from timer to timer, waiting after each until the candidate has asked the server and sleeps
  /// again; ends when the condition holds or `limit` has passed.
  bool advance_until(Duration limit, const LeaseElector& elector, const std::function<bool()>& condition) {
    async::ManualClock& clock = server_.loop().clock();
    const auto end = clock.steady() + limit;
    while (!condition()) {
      const auto due = clock.next_due();
      if (!due || *due > end) return false;
      const auto tries = elector.tries();
      clock.advance(std::chrono::ceil<Duration>(*due - clock.steady()));
      if (!server_.run_until([&] { return elector.tries() > tries; })) return false;
    }
    return true;
  }

  api::Lease lease() { return get(client().get<api::Lease>({ns_, "lock"})); }
};

TEST_F(RealLease, GoesFromOneCandidateToTheNext) {
  Candidate a = candidate("a", true);
  ASSERT_TRUE(server_.run_until([&] { return a.elector->is_leader(); }));
  EXPECT_EQ(lease().spec.holder_identity, "a");
  EXPECT_EQ(lease().spec.lease_transitions.value_or(0), 0);

  Candidate b = candidate("b", false);
  ASSERT_TRUE(server_.run_until([&] { return b.elector->holder() == "a"; }));
  EXPECT_FALSE(b.elector->is_leader());

  stop(a);
  EXPECT_FALSE(a.elector->is_leader());
  EXPECT_EQ(lease().spec.holder_identity, "");
  // Released, so that b need not wait for the end of the lease.
  EXPECT_TRUE(advance_until(std::chrono::seconds(5), *b.elector, [&] { return b.elector->is_leader(); }));
  EXPECT_EQ(lease().spec.holder_identity, "b");
  EXPECT_EQ(lease().spec.lease_transitions.value_or(0), 1);

  stop(b);
  EXPECT_EQ(lease().spec.holder_identity, "b") << "b does not release";
  Candidate c = candidate("c", true);
  ASSERT_TRUE(server_.run_until([&] { return c.elector->holder() == "b"; }));
  EXPECT_FALSE(advance_until(std::chrono::seconds(14), *c.elector, [&] { return c.elector->is_leader(); }));
  EXPECT_TRUE(advance_until(std::chrono::seconds(5), *c.elector, [&] { return c.elector->is_leader(); }));
  EXPECT_EQ(lease().spec.lease_transitions.value_or(0), 2);
  stop(c);
}

TEST_F(RealServer, RepeatedEventsBecomeASeries) {
  kube::EventRecorder recorder(client(), server_.loop().executor(), server_.clock(), server_.metrics(),
                               {.controller = "fabric.tkestack.io/test", .instance = "test-1"});
  const api::ObjectReference about{"v1", "ConfigMap", ns_, "a", "", ""};
  async::TaskGroup group(server_.loop().executor());
  group.spawn("events", recorder.run());
  const auto events = [&] { return get(client().list<api::Event>({ns_, "", ""})).items; };
  recorder.record(about, kube::EventKind::warning, "Overlap", "Join", "10.0.0.0/16 overlaps cluster b");
  EXPECT_TRUE(server_.run_until([&] { return recorder.idle(); }));
  ASSERT_EQ(events().size(), 1U);
  recorder.record(about, kube::EventKind::warning, "Overlap", "Join", "10.0.0.0/16 overlaps cluster b");
  EXPECT_TRUE(server_.run_until([&] { return recorder.idle(); }));
  const auto now = events();
  ASSERT_EQ(now.size(), 1U);
  EXPECT_EQ(now[0].note, "10.0.0.0/16 overlaps cluster b");
  ASSERT_TRUE(now[0].series);
  EXPECT_EQ(now[0].series->count, 2);
  group.stop();
  EXPECT_TRUE(server_.run_until([&] { return group.running().empty(); }));
}

}  // namespace
}  // namespace fabric::controller
