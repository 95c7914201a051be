#include <fabric/api/core.hpp>
#include <fabric/api/names.hpp>
#include <fabric/broker/broker_info.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build.hpp"
#include "commands.hpp"

namespace fabric::ctl {
namespace {

using namespace std::chrono_literals;
using test::Commands;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

namespace names = api::names;

class BrokerInfoCommandTest : public Commands {
 protected:
  void SetUp() override {
    broker::BrokerInfo info;
    info.url = "https://192.0.2.1:6443";
    info.client.ns = std::string(names::kBrokerNamespace);
    info.client.ca_pem = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n";
    info.client.token = Secret::from_text("token");
    info.psk.psk = Secret::from_text(std::string(48, 'k'));
    api::ConfigMap map;
    map.metadata.ns = std::string(names::kBrokerNamespace);
    map.metadata.name = std::string(names::kBrokerInfo);
    map.data[std::string(names::kBrokerInfoKey)] = broker::write_broker_info(info);
    server_.put(map);
  }
};

TEST_F(BrokerInfoCommandTest, GoesIntoAFileWithALoudNoteBesideIt) {
  EXPECT_EQ(run(BrokerInfoCommand{}).value(), Exit::done);
  EXPECT_THAT(out(), AllOf(HasSubstr("kind: Namespace"), HasSubstr("kind: ConfigMap"), HasSubstr("brokerInfo: \"")));
  EXPECT_THAT(err(), HasSubstr("SECRETS"));
}

TEST_F(BrokerInfoCommandTest, ATerminalGetsItOnlyWhenSomebodyInsists) {
  terminal_ = true;
  const auto refused = run(BrokerInfoCommand{});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("--yes"));
  EXPECT_THAT(out(), IsEmpty());
  EXPECT_EQ(server_.requests().size(), 0U) << "not even read";
  EXPECT_EQ(run(BrokerInfoCommand{.yes = true}).value(), Exit::done);
  EXPECT_THAT(out(), HasSubstr("brokerInfo"));
}

TEST_F(BrokerInfoCommandTest, SaysWhereToLookWhenThereIsNone) {
  server_.erase(kube::resource_of<api::ConfigMap>(),
                {std::string(names::kBrokerNamespace), std::string(names::kBrokerInfo)});
  const auto done = run(BrokerInfoCommand{});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::not_found);
  EXPECT_THAT(done.error().message(), AllOf(HasSubstr("submariner-broker-info"), HasSubstr("--context")));
}

}  // namespace
}  // namespace fabric::ctl
