#include <fabric/ctl/options.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <vector>

namespace fabric::ctl {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Result<CommandLine> parse(std::initializer_list<const char*> arguments) {
  std::vector<const char*> all{"/usr/bin/fabricctl"};
  all.insert(all.end(), arguments);
  return parse_command_line(static_cast<int>(all.size()), all.data());
}

/// KUBECONFIG and HOME as a test says.
class Options : public testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("KUBECONFIG");
    ::setenv("HOME", "/home/somebody", 1);
  }
};

TEST_F(Options, StatusKnowsItsFlags) {
  const auto line = parse({"status", "-n", "net", "-v", "-o", "json", "--context", "hub"});
  ASSERT_TRUE(line) << line.error().message();
  EXPECT_EQ(line->context, "hub");
  const auto& status = std::get<StatusCommand>(line->command);
  EXPECT_EQ(status.ns, "net");
  EXPECT_TRUE(status.verbose);
  EXPECT_EQ(status.output, Output::json);
}

TEST_F(Options, CommonFlagsMayStandBeforeTheCommand) {
  const auto line = parse({"--kubeconfig", "/some/config", "--context", "hub", "version"});
  ASSERT_TRUE(line) << line.error().message();
  EXPECT_EQ(line->kubeconfig, "/some/config");
  EXPECT_TRUE(std::holds_alternative<VersionCommand>(line->command));
}

TEST_F(Options, RekeyTakesSeveralGatewaysOrAll) {
  const auto some = parse({"rekey", "--gateway", "n1", "-g", "n2", "--wait", "--timeout", "90s"});
  ASSERT_TRUE(some) << some.error().message();
  const auto& rekey = std::get<RekeyCommand>(some->command);
  EXPECT_THAT(rekey.gateways, ElementsAre("n1", "n2"));
  EXPECT_TRUE(rekey.wait);
  EXPECT_EQ(rekey.timeout, 90s);
  const auto all = parse({"rekey", "--all"});
  ASSERT_TRUE(all);
  EXPECT_TRUE(std::get<RekeyCommand>(all->command).all);
  EXPECT_EQ(std::get<RekeyCommand>(all->command).timeout, 10min);
}

TEST_F(Options, WrongCommandLinesAreNamed) {
  struct Row {
    const char* name;
    std::initializer_list<const char*> arguments;
    const char* expected;
  };

  for (const Row& row : {Row{"no command", {}, "no command"}, Row{"unknown command", {"destroy"}, "destroy"},
                         Row{"all and some", {"rekey", "--all", "--gateway", "n1"}, "--gateway"},
                         Row{"no duration", {"rekey", "--all", "--timeout", "soon"}, "--timeout 'soon'"},
                         Row{"no time at all", {"rotate-psk", "--timeout", "0s"}, "--timeout '0s'"},
                         Row{"status and wait", {"rotate-psk", "--status", "--wait"}, "--status"},
                         Row{"unknown output", {"status", "-o", "xml"}, "xml"},
                         Row{"a namespace that nothing reads", {"version", "-n", "x"}, "-n"}}) {
    const auto line = parse(row.arguments);
    ASSERT_FALSE(line) << row.name;
    EXPECT_EQ(line.error().code, Errc::invalid) << row.name;
    EXPECT_THAT(line.error().message(), HasSubstr(row.expected)) << row.name;
  }
}

TEST_F(Options, HelpNamesExitCodesAndThePlugin) {
  const auto help = parse({"--help"});
  ASSERT_FALSE(help);
  EXPECT_EQ(help.error().code, Errc::cancelled);
  EXPECT_THAT(help.error().message(), AllOf(HasSubstr("rotate-psk"), HasSubstr("Exit code")));
  const char* const plugin[] = {"/usr/bin/kubectl-fabric", "--help"};
  EXPECT_THAT(parse_command_line(2, plugin).error().message(), HasSubstr("kubectl fabric"));
}

TEST_F(Options, FindsTheKubeconfigAsKubectlDoes) {
  EXPECT_EQ(parse({"status"})->kubeconfig, "/home/somebody/.kube/config");
  const auto there = std::filesystem::path(testing::TempDir()) / "fabricctl-options-test";
  std::ofstream(there) << "x";
  ::setenv("KUBECONFIG", ("/nonexistent/a:" + there.string() + ":/nonexistent/b").c_str(), 1);
  EXPECT_EQ(parse({"status"})->kubeconfig, there);
  EXPECT_EQ(parse({"status", "--kubeconfig", "/flag/wins"})->kubeconfig, "/flag/wins");
  std::filesystem::remove(there);
  ::setenv("KUBECONFIG", "/nonexistent/a", 1);
  EXPECT_EQ(parse({"status"})->kubeconfig, "/nonexistent/a");
  ::unsetenv("KUBECONFIG");
  ::unsetenv("HOME");
  EXPECT_TRUE(parse({"status"})->kubeconfig.empty());
}

}  // namespace
}  // namespace fabric::ctl
