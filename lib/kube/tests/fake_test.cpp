#include <fabric/api/core.hpp>
#include <fabric/async/testing.hpp>
#include <fabric/kube/fake/fake_api_server.hpp>
#include <fabric/kube/fake/objects.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace fabric::kube::fake {
namespace {

const ResourceId kPods{"", "v1", "Pod", "pods", true};

json::Value pod(const char* name) {
  return json::Object{{"metadata", json::Object{{"name", name}, {"namespace", "ns"}}}, {"spec", json::Object{}}};
}

class Fake : public testing::Test {
 protected:
  std::unique_ptr<WatchStream> watch(std::chrono::seconds timeout = std::chrono::seconds(60)) {
    const auto list = loop_.run(client_->list(kPods, {}));
    auto stream = loop_.run(client_->watch(kPods, {}, {list->resource_version, timeout}));
    EXPECT_TRUE(stream) << stream.error().message();
    return *std::move(stream);
  }

  async::TestLoop loop_;
  telemetry::Registry metrics_;
  FakeApiServer server_{loop_.executor(), loop_.clock()};
  std::unique_ptr<Client> client_ = server_.client(metrics_);
};

TEST_F(Fake, PutKeepsTheStatusAndShowsUpInWatches) {
  const auto stream = watch();
  json::Value object = pod("a");
  object["status"] = json::Object{{"phase", "Running"}};
  server_.put(kPods, object);
  EXPECT_EQ(server_.find(kPods, {"ns", "a"})->string_at({"status", "phase"}), "Running");
  const auto events = loop_.run(stream->read());
  ASSERT_TRUE(events) << events.error().message();
  EXPECT_EQ(events->at(0).type, WatchType::added);
}

TEST_F(Fake, TimesWatchesOutAsAsked) {
  const auto stream = watch(std::chrono::seconds(60));
  EXPECT_EQ(server_.open_watches(), 1U);
  loop_.advance(std::chrono::seconds(60));
  EXPECT_EQ(server_.open_watches(), 0U);
  const auto end = loop_.run(stream->read());
  ASSERT_TRUE(end) << end.error().message();
  EXPECT_TRUE(end->empty());
}

TEST_F(Fake, FailsOnRequest) {
  server_.fail_next(2, 503, "4");
  EXPECT_EQ(loop_.run(client_->list(kPods, {})).error().code, Errc::unavailable);
  EXPECT_EQ(loop_.run(client_->list(kPods, {})).error().code, Errc::unavailable);
  EXPECT_TRUE(loop_.run(client_->list(kPods, {})));
}

TEST_F(Fake, BreaksWatchesInEveryWay) {
  const auto cut = watch();
  server_.cut_watches();
  EXPECT_EQ(loop_.run(cut->read()).error().code, Errc::unavailable);
  const auto compacted = watch();
  server_.compact();
  EXPECT_EQ(loop_.run(compacted->read()).error().code, Errc::gone);
  const auto marked = watch();
  server_.bookmark();
  EXPECT_EQ(loop_.run(marked->read())->at(0).type, WatchType::bookmark);
  server_.set_unreachable(true);
  EXPECT_EQ(loop_.run(marked->read()).error().code, Errc::unavailable);
  EXPECT_EQ(loop_.run(client_->list(kPods, {})).error().code, Errc::unavailable);
}

TEST_F(Fake, CountsWritesOnly) {
  ASSERT_TRUE(loop_.run(client_->create(kPods, pod("a"))));
  ASSERT_TRUE(loop_.run(client_->get(kPods, {"ns", "a"})));
  EXPECT_EQ(server_.writes(), 1U);
  EXPECT_EQ(server_.requests().size(), 2U);
  EXPECT_EQ(server_.requests()[0], "POST /api/v1/namespaces/ns/pods");
}

TEST_F(Fake, AnswersFromAnInterceptFirst) {
  server_.intercept([](const http::Request& request) -> std::optional<Result<http::Response>> {
    if (request.method != http::Method::post) return std::nullopt;
    return http::Response{403, {}, {}};
  });
  EXPECT_EQ(loop_.run(client_->create(kPods, pod("a"))).error().code, Errc::forbidden);
  EXPECT_TRUE(loop_.run(client_->list(kPods, {})));
}

TEST(FakeSelectors, FollowKubernetes) {
  json::Value object = pod("a");
  object["metadata"]["labels"] = json::Object{{"app", "x"}, {"submariner.io/gateway", "true"}};
  for (const char* yes : {"", "app", "app=x", "app==x", "app!=y", "!tier", "tier!=a", "app in (x, y)", "tier notin (a)",
                          "submariner.io/gateway=true,app"})
    EXPECT_TRUE(matches_labels(yes, object)) << yes;
  for (const char* no : {"tier", "app=y", "app!=x", "!app", "app in (y)", "app notin (x)", "app=x,tier"})
    EXPECT_FALSE(matches_labels(no, object)) << no;
}

}  // namespace
}  // namespace fabric::kube::fake
