#include <fabric/broker/broker_info.hpp>
#include <fabric/json/base64.hpp>
#include <fabric/json/value.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace fabric::broker {
namespace {

using json::Object;
using json::Value;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::string_view kPem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
constexpr std::string_view kToken = "header.payload.signature";

BrokerInfo sample() {
  BrokerInfo info;
  info.url = "https://203.0.113.1:6443";
  info.client = {"submariner-k8s-broker-client-token", "submariner-k8s-broker", std::string(kPem),
                 Secret::from_text(kToken)};
  info.psk.psk = Secret::from_text("0123456789abcdef0123456789abcdef0123456789abcdef");
  info.components = {"connectivity", "service-discovery"};
  info.service_discovery = true;
  info.globalnet_cidr_range = "242.0.0.0/16";
  info.default_globalnet_cluster_size = 65536;
  return info;
}

std::string b64(std::string_view text) {
  return json::encode_base64(text);
}

/// The JSON object of a good broker-info, to be damaged by tests.
Value good() {
  return Object{
      {"brokerURL", "https://203.0.113.1:6443"},
      {"clientToken",
       Object{{"data",
               Object{{"ca.crt", b64(kPem)}, {"namespace", b64("submariner-k8s-broker")}, {"token", b64(kToken)}}}}},
      {"ipsecPSK", Object{{"data", Object{{"psk", b64(std::string(48, 'k'))}}}}}};
}

std::string packed(const Value& value) {
  return json::encode_base64(json::write(value), json::Base64Alphabet::url);
}

std::string error_of(const std::string& text) {
  const auto read = read_broker_info(text);
  return read ? std::string("no error") : read.error().message();
}

TEST(BrokerInfo, ReadsWhatItWrites) {
  const auto read = read_broker_info(write_broker_info(sample()));
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(read->info.url, "https://203.0.113.1:6443");
  EXPECT_EQ(read->info.client.secret_name, "submariner-k8s-broker-client-token");
  EXPECT_EQ(read->info.client.ns, "submariner-k8s-broker");
  EXPECT_EQ(read->info.client.ca_pem, kPem);
  EXPECT_EQ(read->info.client.token.reveal_text(), kToken);
  EXPECT_TRUE(read->info.psk.equals(sample().psk));
  EXPECT_THAT(read->info.components, ElementsAre("connectivity", "service-discovery"));
  EXPECT_EQ(read->info.service_discovery, true);
  EXPECT_EQ(read->info.globalnet_cidr_range, "242.0.0.0/16");
  EXPECT_EQ(read->info.default_globalnet_cluster_size, 65536U);
  EXPECT_THAT(read->warnings, IsEmpty());
}

TEST(BrokerInfo, CarriesBothPsksOfARotation) {
  BrokerInfo info = sample();
  info.psk.number = 7;
  info.psk.previous = Secret::from_text(std::string(48, 'p'));
  const auto read = read_broker_info(write_broker_info(info));
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_TRUE(read->info.psk.equals(info.psk));
}

TEST(BrokerInfo, RefusesPsksThatDoNotFit) {
  const std::string previous = b64(std::string(48, 'p'));
  const std::tuple<std::string_view, Object, std::string_view> rows[] = {
      {"no number", {{"number", b64("two")}}, "ipsecPSK.data.number: the number of a PSK"},
      {"number 0", {{"number", b64("0")}}, "ipsecPSK.data.number"},
      {"previous of the first", {{"previous", previous}}, "PSK 1 has no previous one"},
      {"short previous", {{"number", b64("2")}, {"previous", b64("short")}}, "ipsecPSK.data.previous has 5 bytes"},
      {"twice the same", {{"number", b64("2")}, {"previous", b64(std::string(48, 'k'))}}, "the same as the previous"}};
  for (const auto& [name, more, says] : rows) {
    Value info = good();
    for (const auto& [key, value] : more)
      info["ipsecPSK"]["data"][key] = value;
    EXPECT_THAT(error_of(packed(info)), HasSubstr(std::string(says))) << name;
  }
}

TEST(BrokerInfo, WritesTheFormOfKnitnet) {
  const std::string text = write_broker_info(sample());
  EXPECT_EQ(text.size() % 4, 0U);
  EXPECT_THAT(text, Not(testing::ContainsRegex("[+/]")));
  const auto bytes = json::decode_base64(text);
  ASSERT_TRUE(bytes.has_value());
  const auto root = json::parse(std::string(bytes->begin(), bytes->end()));
  ASSERT_TRUE(root.has_value());
  EXPECT_EQ(root->string_at({"clientToken", "kind"}), "Secret");
  EXPECT_EQ(root->string_at({"clientToken", "type"}), "kubernetes.io/service-account-token");
  EXPECT_EQ(root->string_at({"clientToken", "data", "token"}), b64(kToken));
  EXPECT_EQ(root->string_at({"ipsecPSK", "metadata", "name"}), "submariner-ipsec-psk");
  EXPECT_EQ(root->at({"ipsecPSK", "kind"}), nullptr);
  EXPECT_NE(root->find("Components"), nullptr);
}

TEST(BrokerInfo, ReadsTheSampleOfTheDesignDocument) {
  std::ifstream file(FABRIC_TEST_DATA "/seed_broker_info.txt");
  std::stringstream text;
  text << file.rdbuf();
  const auto read = read_broker_info(text.str());
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(read->info.url, "https://cls-mdl3wn46-kubelb.cq.1251707795.clb.myqcloud.com");
  EXPECT_EQ(read->info.client.secret_name, "submariner-k8s-broker-admin-token-n54fm");
  EXPECT_EQ(read->info.client.ns, "submariner-k8s-broker");
  EXPECT_EQ(read->info.client.token.size(), 1017U);
  EXPECT_EQ(read->info.psk.psk.size(), 48U);
  EXPECT_THAT(read->info.components, IsEmpty());
  EXPECT_THAT(read->warnings, IsEmpty());
}

struct Accepted {
  std::string name;
  std::string (*text)();
};

class AcceptedForm : public testing::TestWithParam<Accepted> {};

TEST_P(AcceptedForm, GivesTheSameToken) {
  const auto read = read_broker_info(GetParam().text());
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(read->info.client.token.reveal_text(), kToken);
  EXPECT_EQ(read->info.url, "https://203.0.113.1:6443");
}

/// Its base64 holds characters that differ between the alphabets.
Value with_high_bytes() {
  Value value = good();
  value["note"] = ">>>?~\u00ff\u00fe>>>?~\u00ff";
  return value;
}

INSTANTIATE_TEST_SUITE_P(
    BrokerInfo, AcceptedForm,
    testing::Values(Accepted{"UrlAlphabet",
                             [] {
                               return json::encode_base64(json::write(with_high_bytes()), json::Base64Alphabet::url);
                             }},
                    Accepted{"StandardAlphabet", [] { return json::encode_base64(json::write(with_high_bytes())); }},
                    Accepted{"WithoutPadding",
                             [] { return json::encode_base64(json::write(good()), json::Base64Alphabet::url, false); }},
                    Accepted{"WrappedLines",
                             [] {
                               std::string text = packed(good());
                               for (std::size_t at = 64; at < text.size(); at += 66)
                                 text.insert(at, "\r\n");
                               return text + "\n";
                             }},
                    Accepted{"SubctlKeys",
                             [] {
                               Value value = good();
                               value["ClientToken"] = *value.find("clientToken");
                               value["IPSecPSK"] = *value.find("ipsecPSK");
                               value["ServiceDiscovery"] = true;
                               value.if_object()->erase("clientToken");
                               value.if_object()->erase("ipsecPSK");
                               return packed(value);
                             }},
                    Accepted{"UrlWithoutScheme",
                             [] {
                               Value value = good();
                               value["brokerURL"] = "203.0.113.1:6443";
                               return packed(value);
                             }},
                    Accepted{"UrlWithSlash",
                             [] {
                               Value value = good();
                               value["brokerURL"] = "https://203.0.113.1:6443/";
                               return packed(value);
                             }}),
    [](const auto& test) { return test.param.name; });

struct Damaged {
  std::string name;
  std::string (*text)();
  std::string says;
};

class DamagedForm : public testing::TestWithParam<Damaged> {};

TEST_P(DamagedForm, IsRefusedWithPlaceAndRemedyAndWithoutSecrets) {
  const std::string message = error_of(GetParam().text());
  EXPECT_THAT(message, HasSubstr(GetParam().says));
  EXPECT_THAT(message, HasSubstr("brokerInfo"));
  EXPECT_THAT(message, Not(HasSubstr(std::string(kToken))));
  EXPECT_THAT(message, Not(HasSubstr(b64(kToken))));
}

std::string without(std::string_view parent, std::string_view key) {
  Value value = good();
  Value* object = parent.empty() ? &value : value.find(parent)->find("data");
  object->if_object()->erase(std::string(key));
  return packed(value);
}

std::string with_datum(std::string_view parent, std::string_view key, Value datum) {
  Value value = good();
  (*value.find(parent)->find("data"))[key] = std::move(datum);
  return packed(value);
}

INSTANTIATE_TEST_SUITE_P(
    BrokerInfo, DamagedForm,
    testing::Values(
        Damaged{"Empty", [] { return std::string(" \n"); }, "is empty"},
        Damaged{"NotBase64", [] { return std::string("{\"brokerURL\":1}"); }, "is not base64"},
        Damaged{"CutBase64", [] { return packed(good()).substr(0, 41); }, "copy ConfigMap submariner-k8s-broker/"},
        Damaged{"BrokenJson", [] { return json::encode_base64(std::string_view("{\"brokerURL\":")); }, "holds no JSON"},
        Damaged{"NoObject", [] { return json::encode_base64(std::string_view("[1]")); }, "no object"},
        Damaged{"NoUrl", [] { return without("", "brokerURL"); }, "brokerURL is missing"},
        Damaged{"PlainHttp",
                [] {
                  Value value = good();
                  value["brokerURL"] = "http://203.0.113.1:6443";
                  return packed(value);
                },
                "is not https://host:port"},
        Damaged{"NoClientToken", [] { return without("", "clientToken"); }, "clientToken is missing"},
        Damaged{"NoToken", [] { return without("clientToken", "token"); }, "clientToken.data.token is missing"},
        Damaged{"EmptyToken", [] { return with_datum("clientToken", "token", ""); }, "clientToken.data.token is empty"},
        Damaged{"TokenNoBase64", [] { return with_datum("clientToken", "token", "!"); }, "clientToken.data.token: "},
        Damaged{"TokenNoString", [] { return with_datum("clientToken", "token", 1); },
                "clientToken.data.token is not a string"},
        Damaged{"TokenWithLineFeed", [] { return with_datum("clientToken", "token", b64("a\nb")); },
                "white space or control"},
        Damaged{"NoCa", [] { return without("clientToken", "ca.crt"); }, "clientToken.data.ca.crt is missing"},
        Damaged{"CaNoPem", [] { return with_datum("clientToken", "ca.crt", b64("x")); }, "not a PEM certificate"},
        Damaged{"BadNamespace", [] { return with_datum("clientToken", "namespace", b64("../x")); },
                "namespace '../x' is not a DNS label"},
        Damaged{"NoPsk", [] { return without("", "ipsecPSK"); }, "ipsecPSK is missing"},
        Damaged{"EmptyPsk", [] { return with_datum("ipsecPSK", "psk", ""); }, "ipsecPSK.data.psk is empty"},
        Damaged{"ShortPsk", [] { return with_datum("ipsecPSK", "psk", b64("short")); }, "has 5 bytes, at least 32"},
        Damaged{"PskSecretNoObject",
                [] {
                  Value value = good();
                  value["ipsecPSK"] = "x";
                  return packed(value);
                },
                "ipsecPSK is not a JSON object"}),
    [](const auto& test) { return test.param.name; });

TEST(BrokerInfo, WarnsAboutAPskOfUnusualLength) {
  const auto read = read_broker_info(with_datum("ipsecPSK", "psk", b64(std::string(32, 'k'))));
  ASSERT_TRUE(read.has_value());
  EXPECT_THAT(read->warnings, ElementsAre(HasSubstr("has 32 bytes where 48 are usual")));
}

TEST(BrokerInfo, RefusesATextLargerThanAConfigMap) {
  EXPECT_THAT(error_of(std::string((1U << 20U) + 1, 'A')), HasSubstr("at most 1048576"));
}

}  // namespace
}  // namespace fabric::broker
