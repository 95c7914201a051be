#include <fabric/routeagent/options.hpp>

#include <gtest/gtest.h>

#include <array>

namespace fabric::routeagent {
namespace {

TEST(RouteAgentOptions, ReadsWhatTheDaemonSetPasses) {
  const std::array args{
      "fabric-routeagent", "--node-name", "a-n1", "--cluster-id", "a", "--natt-port", "4501", "--uninstall", "3"};
  const auto options = parse_options(args.size(), args.data());
  ASSERT_TRUE(options) << options.error().message();
  EXPECT_EQ(options->node, "a-n1");
  EXPECT_EQ(options->cluster_id, "a");
  EXPECT_EQ(options->natt_port, 4501);
  EXPECT_EQ(options->uninstall, "3");
  EXPECT_EQ(options->ns, "submariner-operator");
}

TEST(RouteAgentOptions, NamesWhatIsMissing) {
  const std::array args{"fabric-routeagent", "--node-name", "a-n1"};
  const auto options = parse_options(args.size(), args.data());
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().code, Errc::invalid);
  EXPECT_NE(options.error().message().find("--cluster-id"), std::string::npos);
}

}  // namespace
}  // namespace fabric::routeagent
