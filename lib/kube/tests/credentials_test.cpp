#include <fabric/kube/credentials.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace fabric::kube {
namespace {

class CredentialsTest : public testing::Test {
 protected:
  CredentialsTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fabric-kube-token-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }

  ~CredentialsTest() override { std::filesystem::remove_all(folder_); }

  CredentialsTest(const CredentialsTest&) = delete;
  CredentialsTest& operator=(const CredentialsTest&) = delete;

  void write(const std::string& token) const { std::ofstream(path()) << token; }

  std::filesystem::path path() const { return folder_ / "token"; }

  std::filesystem::path folder_;
  async::ManualClock clock_;
};

TEST_F(CredentialsTest, NoneHasNoToken) {
  EXPECT_EQ(Credentials::none()->token(), nullptr);
  EXPECT_FALSE(Credentials::none()->refused());
}

TEST_F(CredentialsTest, AFixedTokenStaysAlsoWhenRefused) {
  const auto credentials = Credentials::fixed(Secret::from_text("t"));
  EXPECT_FALSE(credentials->refused());
  EXPECT_EQ(credentials->token()->reveal_text(), "t");
}

TEST_F(CredentialsTest, AFileIsReadAgainAfterAMinute) {
  write("one\n");
  const auto credentials = Credentials::from_file(path(), clock_);
  ASSERT_TRUE(credentials) << credentials.error().message();
  write("two\n");
  clock_.advance(std::chrono::seconds(59));
  EXPECT_EQ((*credentials)->token()->reveal_text(), "one");
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ((*credentials)->token()->reveal_text(), "two");
}

TEST_F(CredentialsTest, AFileIsReadAtOnceWhenItsTokenIsRefused) {
  write("one");
  const auto credentials = Credentials::from_file(path(), clock_);
  ASSERT_TRUE(credentials) << credentials.error().message();
  EXPECT_FALSE((*credentials)->refused()) << "the file has no other token yet";
  write("two");
  EXPECT_TRUE((*credentials)->refused());
  EXPECT_EQ((*credentials)->token()->reveal_text(), "two");
}

TEST_F(CredentialsTest, ALostFileKeepsTheLastToken) {
  write("one");
  const auto credentials = Credentials::from_file(path(), clock_);
  ASSERT_TRUE(credentials) << credentials.error().message();
  std::filesystem::remove(path());
  clock_.advance(std::chrono::hours(1));
  EXPECT_EQ((*credentials)->token()->reveal_text(), "one");
  EXPECT_FALSE((*credentials)->refused());
}

TEST_F(CredentialsTest, AMissingOrEmptyFileIsAnError) {
  EXPECT_EQ(Credentials::from_file(path(), clock_).error().code, Errc::not_found);
  write(" \n");
  EXPECT_EQ(Credentials::from_file(path(), clock_).error().code, Errc::invalid);
}

}  // namespace
}  // namespace fabric::kube
