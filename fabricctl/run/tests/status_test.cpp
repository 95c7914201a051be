#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build.hpp"
#include "commands.hpp"

namespace fabric::ctl {
namespace {

using namespace std::chrono_literals;
using test::Commands;
using test::gateway;
using test::generation;
using testing::AllOf;
using testing::HasSubstr;

TEST_F(Commands, StatusEndsWellOnlyWhenEverythingIsReady) {
  server_.put(test::member());
  server_.put(gateway("n1", {generation("g1", 5min)}));
  EXPECT_EQ(run(StatusCommand{}).value(), Exit::done);
  EXPECT_THAT(out(), AllOf(HasSubstr("Fabric default/join (member): Ready"), HasSubstr("n1"), HasSubstr("g1")));
  api::Fabric other = test::fabric("other");
  other.metadata.ns = "elsewhere";
  other.status.conditions.clear();
  server_.put(other);
  EXPECT_EQ(run(StatusCommand{}).value(), Exit::not_done);
  StatusCommand one_namespace;
  one_namespace.ns = "default";
  EXPECT_EQ(run(one_namespace).value(), Exit::done);
}

TEST_F(Commands, StatusForProgramsIsJson) {
  server_.put(test::member());
  StatusCommand command;
  command.output = Output::json;
  EXPECT_EQ(run(command).value(), Exit::done);
  const auto document = json::parse(out());
  ASSERT_TRUE(document);
  EXPECT_EQ(document->string_at({"fabrics", "0", "metadata", "name"}), "join");
}

TEST_F(Commands, StatusNeverWrites) {
  server_.put(test::member());
  ASSERT_TRUE(run(StatusCommand{}));
  EXPECT_EQ(server_.writes(), 0U);
}

TEST_F(Commands, WithoutTheCrdTheRemedyIsNamed) {
  server_.intercept([](const http::Request& request) -> std::optional<Result<http::Response>> {
    if (request.url.target.find("fabrics") == std::string::npos) return std::nullopt;
    http::Response answer;
    answer.status = 404;
    return answer;
  });
  const auto done = run(StatusCommand{});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), AllOf(HasSubstr("Fabric.operator.tkestack.io"), HasSubstr("chart")));
}

TEST_F(Commands, AnApiServerThatCannotBeReachedIsAnError) {
  server_.set_unreachable(true);
  for (const Command& command : {Command(StatusCommand{}), Command(RekeyCommand{.all = true}),
                                 Command(RotatePskCommand{}), Command(BrokerInfoCommand{})}) {
    const auto done = run(command);
    ASSERT_FALSE(done) << command.index();
    EXPECT_EQ(done.error().code, Errc::unavailable) << command.index();
  }
}

}  // namespace
}  // namespace fabric::ctl
