#include <fabric/api/core.hpp>
#include <fabric/async/testing.hpp>
#include <fabric/controller/informer.hpp>
#include <fabric/kube/fake/fake_api_server.hpp>
#include <fabric/telemetry/log.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace fabric::controller {
namespace {

using api::ConfigMap;
using std::chrono::seconds;

const kube::ResourceId kConfigMaps = kube::resource_of<ConfigMap>();

ConfigMap config_map(const std::string& name, const std::string& value) {
  ConfigMap out;
  out.metadata.ns = "ns";
  out.metadata.name = name;
  out.data["x"] = value;
  return out;
}

class InformerTest : public testing::Test {
 protected:
  InformerTest() {
    informer_.store().on_change([this](const kube::ObjectKey& key, const ConfigMap* before, const ConfigMap* after) {
      changes_.push_back(key.name + ":" + (before == nullptr ? "-" : before->data.at("x")) + ">" +
                         (after == nullptr ? "-" : after->data.at("x")));
    });
    informer_.store().on_synced([this] { changes_.emplace_back("synced"); });
  }

  ~InformerTest() override {
    loop_.group().stop();
    loop_.settle();
  }

  InformerTest(const InformerTest&) = delete;
  InformerTest& operator=(const InformerTest&) = delete;

  void start() {
    loop_.group().spawn("informer", informer_.run());
    loop_.settle();
  }

  std::vector<std::string> take_changes() { return std::exchange(changes_, {}); }

  std::string value(const std::string& name) {
    const auto object = informer_.store().find({"ns", name});
    return object ? object->data.at("x") : "absent";
  }

  void put(const std::string& name, const std::string& value) {
    server_.put(config_map(name, value));
    loop_.settle();
  }

  /// An object that does not fit its type.
  void put_broken(const std::string& name) {
    json::Value broken = api::to_object(config_map(name, "x"));
    broken["data"]["x"] = 7;
    server_.put(kConfigMaps, broken);
    loop_.settle();
  }

  std::size_t lists() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        server_.requests(), [](const std::string& one) { return one.find("watch=true") == std::string::npos; }));
  }

  async::TestLoop loop_;
  telemetry::Registry metrics_;
  kube::fake::FakeApiServer server_{loop_.executor(), loop_.clock()};
  std::unique_ptr<kube::Client> client_ = server_.client(metrics_);
  Runtime runtime_{loop_.executor(), loop_.clock(), [] { return 0.5; }, metrics_};
  Informer<ConfigMap> informer_{*client_, {"ns", "", ""}, runtime_};
  std::vector<std::string> changes_;
};

using Changes = std::vector<std::string>;

TEST_F(InformerTest, ListsThenFollows) {
  put("a", "1");
  EXPECT_FALSE(informer_.store().synced());
  start();
  EXPECT_TRUE(informer_.store().synced());
  EXPECT_EQ(take_changes(), (Changes{"a:->1", "synced"}));
  put("b", "1");
  put("a", "2");
  server_.erase(kConfigMaps, {"ns", "b"});
  loop_.settle();
  EXPECT_EQ(take_changes(), (Changes{"b:->1", "a:1>2", "b:1>-"}));
  EXPECT_EQ(value("a"), "2");
}

TEST_F(InformerTest, AnEmptyCollectionIsSyncedToo) {
  start();
  EXPECT_EQ(take_changes(), (Changes{"synced"}));
}

TEST_F(InformerTest, SnapshotsNeverChange) {
  put("a", "1");
  start();
  const auto before = informer_.store().snapshot();
  put("a", "2");
  put("b", "1");
  EXPECT_EQ(before->size(), 1U);
  EXPECT_EQ(before->at({"ns", "a"})->data.at("x"), "1");
  EXPECT_EQ(values<ConfigMap>(informer_.store().snapshot()).size(), 2U);
}

TEST_F(InformerTest, AForgottenPastIsListedAgainAndDeletionsAreNoticed) {
  put("a", "1");
  put("b", "1");
  start();
  take_changes();
  server_.set_unreachable(true);
  server_.erase(kConfigMaps, {"ns", "a"});
  server_.put(config_map("b", "2"));
  server_.compact();
  server_.set_unreachable(false);
  loop_.advance(seconds(60));
  EXPECT_EQ(take_changes(), (Changes{"b:1>2", "a:1>-"}));
  EXPECT_EQ(lists(), 2U);
}

TEST_F(InformerTest, AnErrorEventListsAgain) {
  start();
  put("a", "1");
  server_.compact();
  loop_.settle();
  EXPECT_EQ(server_.open_watches(), 1U);
  EXPECT_EQ(lists(), 2U);
  put("a", "2");
  EXPECT_EQ(value("a"), "2");
}

TEST_F(InformerTest, ACutWatchMissesNothingAndListsNothing) {
  start();
  put("a", "1");
  server_.cut_watches();
  server_.put(config_map("a", "2"));
  loop_.settle();
  EXPECT_EQ(value("a"), "1");
  loop_.advance(seconds(2));
  EXPECT_EQ(value("a"), "2");
  EXPECT_EQ(lists(), 1U);
}

TEST_F(InformerTest, BookmarksSpareAListAfterACompaction) {
  start();
  server_.put(kube::ResourceId{"", "v1", "Pod", "pods", true},
              json::Object{{"metadata", json::Object{{"name", "p"}, {"namespace", "other"}}}});
  server_.bookmark();
  loop_.settle();
  server_.cut_watches();
  loop_.advance(seconds(2));
  EXPECT_NE(server_.requests().back().find("resourceVersion=2&"), std::string::npos) << server_.requests().back();
}

TEST_F(InformerTest, AnUnreachableServerKeepsTheLastStateAndIsLoggedOnce) {
  put("a", "1");
  start();
  const log::Capture capture;
  server_.set_unreachable(true);
  loop_.advance(std::chrono::hours(1));
  EXPECT_EQ(value("a"), "1");
  EXPECT_TRUE(informer_.store().synced());
  server_.set_unreachable(false);
  loop_.advance(seconds(60));
  put("a", "2");
  EXPECT_EQ(value("a"), "2");
  const std::string text = capture.text();
  const auto count = [&](const std::string& what) {
    std::size_t found = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count("collection not reachable\""), 1U) << text;
  EXPECT_EQ(count("collection reachable again"), 1U) << text;
}

TEST_F(InformerTest, IsNotAskedMoreOftenThanTheBackoffAllows) {
  server_.set_unreachable(true);
  start();
  loop_.advance(std::chrono::minutes(10));
  EXPECT_LE(server_.requests().size(), 40U);
  EXPECT_GE(server_.requests().size(), 15U);
}

TEST_F(InformerTest, WatchesEndAndBeginAgainForDays) {
  start();
  loop_.advance(std::chrono::hours(24));
  put("a", "1");
  EXPECT_EQ(value("a"), "1");
  EXPECT_EQ(lists(), 1U);
  EXPECT_LE(server_.requests().size(), 300U);
}

TEST_F(InformerTest, AnUnreadableObjectIsReportedAndItsLastGoodVersionStays) {
  put("good", "1");
  put_broken("never-good");
  start();
  EXPECT_TRUE(informer_.store().synced()) << "one bad object does not stop the others";
  EXPECT_EQ(value("good"), "1");
  EXPECT_EQ(value("never-good"), "absent");
  put_broken("good");
  EXPECT_EQ(value("good"), "1");
  ASSERT_EQ(informer_.store().unreadable().size(), 2U);
  EXPECT_NE(informer_.store().unreadable().at({"ns", "good"}).message().find("data.x"), std::string::npos);
  server_.compact();
  loop_.settle();
  EXPECT_EQ(value("good"), "1") << "also after a new list";
  put("good", "2");
  EXPECT_EQ(value("good"), "2");
  EXPECT_FALSE(informer_.store().unreadable().contains({"ns", "good"}));
}

TEST_F(InformerTest, ReadsAllPagesOfALargeCollection) {
  for (int i = 0; i < 1201; ++i)
    server_.put(config_map("c" + std::to_string(i), "1"));
  start();
  EXPECT_EQ(informer_.store().snapshot()->size(), 1201U);
  EXPECT_EQ(lists(), 3U);
}

TEST_F(InformerTest, UntypedKindsWorkToo) {
  Informer<json::Value> untyped("nodes", std::make_unique<KubeListWatch>(*client_, kConfigMaps, kube::Selection{}),
                                runtime_);
  put("a", "1");
  loop_.group().spawn("untyped", untyped.run());
  loop_.settle();
  ASSERT_NE(untyped.store().find({"ns", "a"}), nullptr);
  EXPECT_EQ(untyped.store().find({"ns", "a"})->string_at({"data", "x"}), "1");
  loop_.group().stop();
  loop_.settle();
}

}  // namespace
}  // namespace fabric::controller
