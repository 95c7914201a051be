#include <fabric/kernel/netns_lock.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <unistd.h>

#include <sys/wait.h>

namespace fabric::kernel {
namespace {

using ::testing::HasSubstr;

class NetnsLockTest : public ::testing::Test {
 protected:
  NetnsLockTest() { std::filesystem::remove_all(folder_); }

  ~NetnsLockTest() override { std::filesystem::remove_all(folder_); }

  Result<NetnsLock> take(std::string_view name = "trial") const { return take_netns_lock(name, folder_); }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      fmt::format("fabric-lock-{}-{}", ::getpid(), ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(NetnsLockTest, HasOneHolderUntilItIsDropped) {
  auto held = take();
  ASSERT_TRUE(held) << held.error().message();
  const auto second = take();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::unavailable);
  EXPECT_THAT(second.error().message(), HasSubstr((folder_ / "trial.").string()));
  EXPECT_TRUE(take("another"));
  held->reset();
  EXPECT_TRUE(take());
}

TEST_F(NetnsLockTest, GoesWithItsProcess) {
  std::array<int, 2> told{};
  ASSERT_EQ(::pipe(told.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = take();
    const char said = held ? 'y' : 'n';
    if (::write(told[1], &said, 1) == 1) ::pause();
    std::_Exit(0);
  }
  char said = 0;
  ASSERT_EQ(::read(told[0], &said, 1), 1);
  ASSERT_EQ(said, 'y');
  EXPECT_FALSE(take());
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(take());
  ::close(told[0]);
  ::close(told[1]);
}

TEST_F(NetnsLockTest, AFolderThatCannotBeMadeIsNamed) {
  const auto lock = take_netns_lock("trial", "/proc/nowhere");
  ASSERT_FALSE(lock);
  EXPECT_THAT(lock.error().message(), HasSubstr("/proc/nowhere"));
}

}  // namespace
}  // namespace fabric::kernel
