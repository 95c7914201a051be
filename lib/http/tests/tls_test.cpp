#include <fabric/async/testing.hpp>
#include <fabric/http/client.hpp>
#include <fabric/telemetry/log.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "raw_server.hpp"

namespace fabric::http {
namespace {

using ::testing::HasSubstr;

async::Task<void> serve_ok(std::shared_ptr<test::Peer> peer, int) {
  while (!(co_await peer->request()).empty())
    co_await peer->write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

class Tls : public ::testing::Test {
 protected:
  static const test::Certificate& ca() {
    static const auto certificate = test::make_certificate({.common_name = "ca", .is_ca = true}, nullptr);
    return certificate;
  }

  static test::Certificate server_certificate(const std::string& names, long valid_seconds = 3600) {
    return test::make_certificate(
        {.common_name = "localhost", .alternative_names = names, .valid_seconds = valid_seconds}, &ca());
  }

  Result<Response> get(const test::Certificate& own, TlsOptions options, const std::string& host = "127.0.0.1",
                       const std::string& client_ca = {}) {
    test::RawServer server(loop_.io(), serve_ok, test::server_context(own, client_ca));
    auto client = Client::open(loop_.executor(), {.tls = std::move(options)});
    if (!client) return std::unexpected(client.error());
    auto url = Url::parse(fmt::format("https://{}:{}/", host, server.port()));
    return loop_.run_blocking(
        (*client)->send({.method = Method::get, .url = *url}, async::Deadline::after(std::chrono::seconds(20))));
  }

  async::TestLoop loop_;
};

TEST_F(Tls, AcceptsAServerByIpAddress) {
  const auto answer = get(server_certificate("IP:127.0.0.1"), {.ca_pem = ca().certificate});
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->body, "ok");
}

TEST_F(Tls, AcceptsAServerByName) {
  const auto answer = get(server_certificate("DNS:localhost"), {.ca_pem = ca().certificate}, "localhost");
  ASSERT_TRUE(answer) << answer.error().message();
}

TEST_F(Tls, AcceptsAServerByTheNameThatIsAskedForInsteadOfTheHost) {
  const auto own = server_certificate("DNS:kubernetes.default.svc");
  EXPECT_TRUE(get(own, {.ca_pem = ca().certificate, .server_name = "kubernetes.default.svc"}));
  EXPECT_FALSE(get(own, {.ca_pem = ca().certificate}));
}

TEST_F(Tls, AcceptsOneOfSeveralAuthorities) {
  const auto other = test::make_certificate({.common_name = "other", .is_ca = true}, nullptr);
  const auto answer = get(server_certificate("IP:127.0.0.1"), {.ca_pem = other.certificate + ca().certificate});
  EXPECT_TRUE(answer);
}

struct Refusal {
  std::string name;
  std::string alternative_names;
  long valid_seconds = 3600;
  std::string reason;
};

class TlsRefusal : public Tls, public ::testing::WithParamInterface<Refusal> {};

TEST_P(TlsRefusal, IsUnauthorizedAndSaysWhy) {
  const auto& row = GetParam();
  const auto answer = get(server_certificate(row.alternative_names, row.valid_seconds), {.ca_pem = ca().certificate});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::unauthorized) << answer.error().message();
  EXPECT_THAT(answer.error().context, HasSubstr(row.reason));
  EXPECT_THAT(answer.error().context, HasSubstr("https://127.0.0.1:"));
}

INSTANTIATE_TEST_SUITE_P(Rows, TlsRefusal,
                         ::testing::Values(Refusal{"wrong_address", "IP:127.0.0.2", 3600, "IP address mismatch"},
                                           Refusal{"a_dns_name_that_looks_like_the_address", "DNS:127.0.0.1", 3600,
                                                   "IP address mismatch"},
                                           Refusal{"no_alternative_name", "", 3600, "IP address mismatch"},
                                           Refusal{"expired", "IP:127.0.0.1", -60, "certificate has expired"}),
                         [](const auto& row) { return row.param.name; });

TEST_F(Tls, RefusesTheNameOfAnotherServer) {
  const auto answer = get(server_certificate("DNS:other"), {.ca_pem = ca().certificate}, "localhost");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::unauthorized);
  EXPECT_THAT(answer.error().context, HasSubstr("hostname mismatch"));
}

TEST_F(Tls, DoesNotReadTheNameFromTheSubject) {
  const auto answer = get(server_certificate(""), {.ca_pem = ca().certificate}, "localhost");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::unauthorized);
}

TEST_F(Tls, RefusesAServerOfAnotherAuthority) {
  const auto other = test::make_certificate({.common_name = "other", .is_ca = true}, nullptr);
  const auto answer = get(server_certificate("IP:127.0.0.1"), {.ca_pem = other.certificate});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::unauthorized);
}

TEST_F(Tls, TheSystemStoreDoesNotKnowOurAuthority) {
  const auto answer = get(server_certificate("IP:127.0.0.1"), {});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::unauthorized);
}

TEST_F(Tls, WithoutVerificationAcceptsAnyServerAndWarns) {
  const log::Capture log;
  const auto own = test::make_certificate({.common_name = "self"}, nullptr);
  EXPECT_TRUE(get(own, {.insecure_skip_verify = true}));
  EXPECT_THAT(log.text(), HasSubstr(R"("level":"warn")"));
  EXPECT_THAT(log.text(), HasSubstr("not verified"));
}

TEST_F(Tls, ShowsItsClientCertificate) {
  const auto own = test::make_certificate({.common_name = "client"}, &ca());
  TlsOptions options{.ca_pem = ca().certificate,
                     .certificate_pem = own.certificate,
                     .key_pem = std::make_shared<const Secret>(Secret::from_text(own.key))};
  const auto answer = get(server_certificate("IP:127.0.0.1"), options, "127.0.0.1", ca().certificate);
  ASSERT_TRUE(answer) << answer.error().message();
}

TEST_F(Tls, AServerThatMissesOurCertificateIsUnauthorized) {
  const auto answer =
      get(server_certificate("IP:127.0.0.1"), {.ca_pem = ca().certificate}, "127.0.0.1", ca().certificate);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::unauthorized) << answer.error().message();
  EXPECT_THAT(answer.error().context, HasSubstr("does not accept our certificate"));
}

TEST_F(Tls, AnEndWithoutTheClosingAlertIsNoEndOfABody) {
  const auto own = server_certificate("IP:127.0.0.1");
  const auto cut = [](std::shared_ptr<test::Peer> peer, int) -> async::Task<void> {
    static_cast<void>(co_await peer->request());
    co_await peer->write("HTTP/1.1 200 OK\r\n\r\nhalf of it");
    peer->cut();
  };
  test::RawServer server(loop_.io(), cut, test::server_context(own));
  auto client = Client::open(loop_.executor(), {.tls = {.ca_pem = ca().certificate}});
  ASSERT_TRUE(client);
  auto url = Url::parse(fmt::format("https://127.0.0.1:{}/", server.port()));
  const auto answer = loop_.run_blocking(
      (*client)->send({.method = Method::get, .url = *url}, async::Deadline::after(std::chrono::seconds(20))));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::unavailable);
}

struct BadMaterial {
  std::string name;
  TlsOptions options;
  std::string reason;
};

class TlsMaterial : public ::testing::TestWithParam<BadMaterial> {};

TEST_P(TlsMaterial, IsRefusedWhenTheClientIsOpened) {
  async::TestLoop loop;
  const auto client = Client::open(loop.executor(), {.tls = GetParam().options});
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, Errc::invalid);
  EXPECT_THAT(client.error().context, HasSubstr(GetParam().reason));
}

std::shared_ptr<const Secret> secret(const std::string& text) {
  return std::make_shared<const Secret>(Secret::from_text(text));
}

const test::Certificate& some_certificate() {
  static const auto certificate = test::make_certificate({}, nullptr);
  return certificate;
}

const test::Certificate& another_certificate() {
  static const auto certificate = test::make_certificate({}, nullptr);
  return certificate;
}

INSTANTIATE_TEST_SUITE_P(
    Rows, TlsMaterial,
    ::testing::Values(
        BadMaterial{"ca_without_certificate", {.ca_pem = "not a certificate"}, "CA certificates"},
        BadMaterial{
            "certificate_without_key", {.certificate_pem = some_certificate().certificate}, "its key is missing"},
        BadMaterial{
            "key_without_certificate", {.key_pem = secret(some_certificate().key)}, "the certificate is missing"},
        BadMaterial{"key_that_is_none",
                    {.certificate_pem = some_certificate().certificate, .key_pem = secret("nonsense")},
                    "client key"},
        BadMaterial{"key_of_another",
                    {.certificate_pem = some_certificate().certificate, .key_pem = secret(another_certificate().key)},
                    "client key"}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace fabric::http
