#include <fabric/ctl/commands.hpp>
#include <fabric/ctl/options.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <sys/stat.h>

namespace fabric::ctl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Flags = std::map<std::string, std::string>;

const Flags kFlags{{"--local", "172.17.0.2"},
                   {"--remote", "124.220.14.201"},
                   {"--local-prefix", "10.0.0.0/24"},
                   {"--remote-prefix", "10.0.1.0/24"},
                   {"--spi", "186"}};

/// `static-tunnel ACTION` with kFlags, some of them changed; an empty value leaves a flag out.
Result<CommandLine> parse(const std::string& action, const Flags& changed = {}, std::vector<std::string> more = {}) {
  Flags flags = changed;
  flags.insert(kFlags.begin(), kFlags.end());
  std::vector<std::string> all{"fabricctl", "static-tunnel", action};
  for (const auto& [flag, value] : flags) {
    if (!value.empty()) all.insert(all.end(), {flag, value});
  }
  all.insert(all.end(), more.begin(), more.end());
  std::vector<const char*> argv;
  for (const std::string& each : all)
    argv.push_back(each.c_str());
  return parse_command_line(static_cast<int>(argv.size()), argv.data());
}

TEST(StaticTunnelOptions, UpTakesTheValuesOfTheFarEnd) {
  const auto line = parse("up", {{"--key-file", "/root/key"}}, {"--i-know-that-static-keys-are-unsafe"});
  ASSERT_TRUE(line) << line.error().message();
  const auto& command = std::get<StaticTunnelCommand>(line->command);
  EXPECT_TRUE(command.up);
  EXPECT_TRUE(command.acknowledged);
  EXPECT_EQ(command.key_file, "/root/key");
  EXPECT_EQ(command.tunnel.local.to_string(), "172.17.0.2");
  EXPECT_EQ(command.tunnel.remote.to_string(), "124.220.14.201");
  EXPECT_EQ(command.tunnel.local_prefix.to_string(), "10.0.0.0/24");
  EXPECT_EQ(command.tunnel.remote_prefix.to_string(), "10.0.1.0/24");
  EXPECT_EQ(command.tunnel.spi, netstate::Spi(186));
  EXPECT_EQ(command.tunnel.reqid, netstate::Reqid(186)) << "by default that of the SPI";
}

TEST(StaticTunnelOptions, DownNeedsNeitherKeyNorAcknowledgement) {
  const auto line = parse("down", {{"--spi", "0x1000"}, {"--reqid", "7"}});
  ASSERT_TRUE(line) << line.error().message();
  const auto& command = std::get<StaticTunnelCommand>(line->command);
  EXPECT_FALSE(command.up);
  EXPECT_EQ(command.tunnel.spi, netstate::Spi(0x1000));
  EXPECT_EQ(command.tunnel.reqid, netstate::Reqid(7));
}

TEST(StaticTunnelOptions, WrongValuesAreNamed) {
  struct Row {
    const char* name;
    Flags changed;
    const char* expected;
  };

  for (const Row& row :
       {Row{"no local", {{"--local", ""}}, "--local"}, Row{"no SPI", {{"--spi", ""}}, "--spi"},
        Row{"a name", {{"--remote", "gw.example"}}, "--remote"},
        Row{"two families", {{"--remote", "2001:db8::1"}}, "--remote 2001:db8::1"},
        Row{"oneself", {{"--remote", "172.17.0.2"}}, "--local 172.17.0.2"},
        Row{"no address at all", {{"--local", "0.0.0.0"}}, "0.0.0.0"},
        Row{"host bits", {{"--local-prefix", "10.0.0.1/24"}}, "--local-prefix"},
        Row{"overlap", {{"--remote-prefix", "10.0.0.0/16"}}, "--remote-prefix 10.0.0.0/16"},
        Row{"prefixes of two families", {{"--remote-prefix", "fd01::/48"}}, "fd01::/48"},
        Row{"SPI 0", {{"--spi", "0"}}, "--spi 0"}, Row{"too large an SPI", {{"--spi", "4294967296"}}, "--spi"},
        Row{"a reqid of the agents", {{"--reqid", "0x46000001"}}, "--reqid 0x46000001"},
        Row{"an SPI like a reqid of the agents", {{"--spi", "0x46ffffff"}}, "--reqid 0x46ffffff"}}) {
    const auto line = parse("down", row.changed);
    ASSERT_FALSE(line) << row.name;
    EXPECT_EQ(line.error().code, Errc::invalid) << row.name;
    EXPECT_THAT(line.error().message(), HasSubstr(row.expected)) << row.name;
  }
  EXPECT_THAT(parse("up").error().message(), HasSubstr("--key-file"));
  EXPECT_FALSE(parse("sideways"));
  EXPECT_FALSE(parse("up", {{"--key", "0x00"}, {"--key-file", "/k"}})) << "no key on the command line";
}

/// Everything here is refused before the kernel is asked.
class StaticTunnelUp : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(file_) << "0x" << std::string(72, 'c') << '\n';
    set_mode(0600);
  }

  void TearDown() override { std::filesystem::remove(file_); }

  void set_mode(mode_t mode) const { ASSERT_EQ(::chmod(file_.c_str(), mode), 0); }

  Result<Exit> run(bool acknowledged) {
    const auto line = parse("up", {{"--key-file", file_}});
    auto command = std::get<StaticTunnelCommand>(line->command);
    command.acknowledged = acknowledged;
    return static_tunnel(command, out_, err_);
  }

  const std::string file_ = std::filesystem::path(testing::TempDir()) / "fabricctl-static-key";
  std::ostringstream out_, err_;
};

TEST_F(StaticTunnelUp, IsRefusedWithReasonsUnlessTheDangerIsAcknowledged) {
  EXPECT_EQ(run(false), Exit::not_done);
  EXPECT_EQ(out_.str(), "");
  EXPECT_THAT(err_.str(), AllOf(HasSubstr("refused"), HasSubstr("one key for both directions"), HasSubstr("nonce"),
                                HasSubstr("RFC 4106"), HasSubstr("no forward"), HasSubstr("no rekeying"),
                                HasSubstr("Instead"), HasSubstr("--i-know-that-static-keys-are-unsafe")));
}

TEST_F(StaticTunnelUp, RefusesAKeyFileThatOthersCanRead) {
  for (const mode_t mode : {0640U, 0604U, 0620U}) {
    set_mode(mode);
    const auto result = run(true);
    ASSERT_FALSE(result) << mode;
    EXPECT_THAT(result.error().message(), AllOf(HasSubstr("--key-file " + file_), HasSubstr("chmod 600"))) << mode;
  }
  EXPECT_THAT(err_.str(), HasSubstr("*** WARNING ***"));
}

TEST_F(StaticTunnelUp, RefusesAFileThatHoldsNoKeyWithoutShowingIt) {
  std::ofstream(file_) << "cafe";
  const auto result = run(true);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), AllOf(HasSubstr("--key-file"), HasSubstr("2 bytes"), Not(HasSubstr("cafe"))));
}

TEST_F(StaticTunnelUp, RefusesWhatIsNoFile) {
  std::filesystem::remove(file_);
  EXPECT_EQ(run(true).error().code, Errc::not_found);
  std::filesystem::create_directory(file_);
  EXPECT_THAT(run(true).error().message(), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace fabric::ctl
