#include <fabric/api/core.hpp>
#include <fabric/async/testing.hpp>
#include <fabric/http/fake/scripted_transport.hpp>
#include <fabric/kube/client.hpp>
#include <fabric/kube/fake/fake_api_server.hpp>
#include <fabric/kube/status.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace fabric::kube {
namespace {

const ResourceId kPods{"", "v1", "Pod", "pods", true};

class ClientTest : public testing::Test {
 protected:
  std::unique_ptr<Client> make(std::shared_ptr<Credentials> credentials = Credentials::none(),
                               const std::string& url = "https://api:6443", ClientOptions options = {}) {
    return std::make_unique<Client>(transport_, *http::Url::parse(url), std::move(credentials), loop_.clock(), metrics_,
                                    std::move(options));
  }

  async::TestLoop loop_;
  telemetry::Registry metrics_;
  http::fake::ScriptedTransport transport_{loop_.executor()};
};

TEST_F(ClientTest, SendsTheTokenAndCountsTheAnswer) {
  transport_.reply(200, "{}");
  const auto client = make(Credentials::fixed(Secret::from_text("t")));
  EXPECT_TRUE(loop_.run(client->get(kPods, {"ns", "p"})));
  const http::Request& sent = transport_.requests().at(0);
  EXPECT_EQ(sent.url.to_string(), "https://api:6443/api/v1/namespaces/ns/pods/p");
  ASSERT_NE(sent.bearer, nullptr);
  EXPECT_EQ(sent.bearer->reveal_text(), "t");
  EXPECT_NE(metrics_.render().find(R"(rest_client_requests_total{code="200",host="api:6443",method="GET"} 1)"),
            std::string::npos)
      << metrics_.render();
}

TEST_F(ClientTest, KeepsThePathOfTheServersUrl) {
  transport_.reply(200, "{}");
  EXPECT_TRUE(loop_.run(make(Credentials::none(), "https://proxy/k8s/clusters/c-1/")->get(kPods, {"ns", "p"})));
  EXPECT_EQ(transport_.requests().at(0).url.target, "/k8s/clusters/c-1/api/v1/namespaces/ns/pods/p");
}

TEST_F(ClientTest, NamesItselfAsFieldManagerOfWrites) {
  transport_.reply(201, "{}");
  const auto client =
      make(Credentials::none(), "https://api", {.timeout = Duration{1000}, .field_manager = "fabric-operator"});
  EXPECT_TRUE(
      loop_.run(client->create(kPods, json::Object{{"metadata", json::Object{{"name", "p"}, {"namespace", "ns"}}}})));
  EXPECT_EQ(transport_.requests().at(0).url.target, "/api/v1/namespaces/ns/pods?fieldManager=fabric-operator");
  EXPECT_EQ(transport_.requests().at(0).body,
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"ns"}})");
}

TEST_F(ClientTest, ErrorsOfTheTransportNameTheRequest) {
  transport_.reply_error(Errc::unavailable, "api:6443: connection refused");
  const auto result = loop_.run(make()->get(kPods, {"ns", "p"}));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::unavailable);
  EXPECT_EQ(result.error().message(), "get Pod ns/p: api:6443: connection refused");
  EXPECT_NE(metrics_.render().find(R"(code="<error>")"), std::string::npos);
}

TEST_F(ClientTest, AnAnswerThatIsNoJsonIsInvalid) {
  transport_.reply(200, "<html>");
  EXPECT_EQ(loop_.run(make()->get(kPods, {"ns", "p"})).error().code, Errc::invalid);
}

TEST_F(ClientTest, TriesOnceMoreWhenTheTokenFileHasANewToken) {
  std::string pattern = (std::filesystem::temp_directory_path() / "fabric-kube-client-XXXXXX").string();
  const std::filesystem::path folder = mkdtemp(pattern.data());
  std::ofstream(folder / "token") << "old";
  auto credentials = Credentials::from_file(folder / "token", loop_.clock());
  ASSERT_TRUE(credentials) << credentials.error().message();
  const auto client = make(*credentials);

  transport_.reply(401, "");
  EXPECT_EQ(loop_.run(client->get(kPods, {"ns", "p"})).error().code, Errc::unauthorized) << "the same token";
  EXPECT_EQ(transport_.requests().size(), 1U);

  std::ofstream(folder / "token") << "new";
  transport_.reply(401, "");
  transport_.reply(200, "{}");
  EXPECT_TRUE(loop_.run(client->get(kPods, {"ns", "p"})));
  EXPECT_EQ(transport_.requests().back().bearer->reveal_text(), "new");
  std::filesystem::remove_all(folder);
}

TEST_F(ClientTest, AListStartsAgainWithoutPagesWhenItsTokenExpires) {
  transport_.reply(200, R"({"metadata":{"resourceVersion":"5","continue":"t"},"items":[{"metadata":{"name":"old"}}]})");
  transport_.reply(410, "");
  transport_.reply(
      200, R"({"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]})");
  const auto list = loop_.run(make()->list(kPods, {}));
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(list->items.size(), 2U);
  EXPECT_EQ(list->resource_version, "9");
  EXPECT_EQ(transport_.requests().at(2).url.target, "/api/v1/pods");
}

TEST_F(ClientTest, AListGivesUpWhenTheFirstPageIsGone) {
  transport_.reply(410, "");
  EXPECT_EQ(loop_.run(make()->list(kPods, {})).error().code, Errc::gone);
}

TEST_F(ClientTest, NullItemsAreAnEmptyList) {
  transport_.reply(200, R"({"metadata":{"resourceVersion":"5"},"items":null})");
  EXPECT_TRUE(loop_.run(make()->list(kPods, {}))->items.empty());
}

class WatchTest : public ClientTest {
 protected:
  void open() {
    auto opened = loop_.run(make_client().watch(kPods, {}, {"7", std::chrono::seconds(300)}));
    ASSERT_TRUE(opened) << opened.error().message();
    watch_ = *std::move(opened);
  }

  Client& make_client() {
    client_ = make();
    return *client_;
  }

  std::shared_ptr<http::fake::ScriptedStream> stream_ = transport_.reply_stream();
  std::unique_ptr<Client> client_;
  std::unique_ptr<WatchStream> watch_;
};

TEST_F(WatchTest, DeliversWhatCameBeforeAnError) {
  open();
  stream_->push(R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})"
                "\n"
                R"({"type":"ERROR","object":{"code":410}})"
                "\n");
  const auto events = loop_.run(watch_->read());
  ASSERT_TRUE(events) << events.error().message();
  EXPECT_EQ(events->size(), 1U);
  EXPECT_EQ(loop_.run(watch_->read()).error().code, Errc::gone);
}

TEST_F(WatchTest, TellsAnOrderlyEndFromACut) {
  open();
  stream_->finish();
  const auto end = loop_.run(watch_->read());
  ASSERT_TRUE(end) << end.error().message();
  EXPECT_TRUE(end->empty());
}

TEST_F(WatchTest, AnEndInsideOfAnEventIsACut) {
  open();
  stream_->push(R"({"type":)");
  stream_->finish();
  EXPECT_EQ(loop_.run(watch_->read()).error().code, Errc::unavailable);
}

TEST_F(WatchTest, TimesOutFiveSecondsAfterTheServerShouldHaveEndedIt) {
  open();
  std::optional<Result<std::vector<WatchEvent>>> result;
  loop_.start(watch_->read(), result);
  stream_->push(R"({"type":"ADDED","object":{}})"
                "\n");
  loop_.settle();
  ASSERT_TRUE(result && *result);
  loop_.advance(std::chrono::seconds(306));
  EXPECT_EQ(loop_.run(watch_->read()).error().code, Errc::timeout);
}

TEST_F(ClientTest, ARefusedWatchCarriesTheServersWords) {
  auto stream = transport_.reply_stream({.status = 429, .headers = {{"Retry-After", "3"}}, .body = {}});
  stream->push(R"({"kind":"Status","message":"storage is )");
  stream->push(R"(initializing"})");
  stream->finish();
  const auto watch = loop_.run(make()->watch(kPods, {"ns", "", ""}, {"7", std::chrono::seconds(300)}));
  ASSERT_FALSE(watch);
  EXPECT_EQ(watch.error().code, Errc::unavailable);
  EXPECT_EQ(watch.error().context, "watch pods in ns: storage is initializing");
  EXPECT_EQ(retry_after(watch.error()), std::chrono::seconds(3));
}

}  // namespace
}  // namespace fabric::kube
