#include <fabric/program/program.hpp>
#include <fabric/telemetry/log.hpp>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>

namespace fabric::program {
namespace {

TEST(Program, ParsesIntoWhatTheOptionsAreBoundTo) {
  CLI::App app("", "trial");
  std::string name;
  app.add_option("--name", name)->required();
  const std::array right{"trial", "--name", "x"};
  ASSERT_TRUE(parse(app, right.size(), right.data()));
  EXPECT_EQ(name, "x");
  const std::array wrong{"trial"};
  const auto missing = parse(app, wrong.size(), wrong.data());
  EXPECT_EQ(missing.error().code, Errc::invalid);
  EXPECT_NE(missing.error().message().find("--name"), std::string::npos);
}

TEST(Program, HelpIsNoFailure) {
  CLI::App app("What it does.", "trial");
  const std::array args{"trial", "--help"};
  const auto help = parse(app, args.size(), args.data());
  ASSERT_EQ(help.error().code, Errc::cancelled);
  EXPECT_NE(help.error().message().find("What it does."), std::string::npos);
  EXPECT_EQ(finish("trial", help), EXIT_SUCCESS);
}

TEST(Program, AnErrorIsLoggedAndFails) {
  const log::Capture captured;
  EXPECT_EQ(finish("trial", fail(Errc::unavailable, "no API server")), EXIT_FAILURE);
  EXPECT_NE(captured.text().find("no API server"), std::string::npos);
  EXPECT_EQ(finish("trial", Result<void>()), EXIT_SUCCESS);
}

TEST(Program, AKubeconfigThatIsNotThereIsNamed) {
  const auto config = api_server("/nonexistent/kubeconfig");
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message().find("/nonexistent/kubeconfig"), std::string::npos);
}

}  // namespace
}  // namespace fabric::program
