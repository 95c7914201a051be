#include <fabric/kernel/netns_lock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <unistd.h>

#include <sys/wait.h>

namespace fabric::kernel {
namespace {

using ::testing::HasSubstr;

/// Tests may run beside each other in one network namespace.
std::string own_name() {
  return "fabric/test-" + std::to_string(::getpid());
}

TEST(NetnsLock, HasOneHolderUntilItIsDropped) {
  auto held = take_netns_lock(own_name());
  ASSERT_TRUE(held) << held.error().message();
  const auto second = take_netns_lock(own_name());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::unavailable);
  EXPECT_THAT(second.error().message(), HasSubstr(own_name()));
  EXPECT_TRUE(take_netns_lock(own_name() + "-other"));
  held->reset();
  EXPECT_TRUE(take_netns_lock(own_name()));
}

TEST(NetnsLock, GoesWithItsProcess) {
  const std::string name = own_name();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = take_netns_lock(name);
    const char said = held ? 'y' : 'n';
    static_cast<void>(::write(ready[1], &said, 1) == 1);
    ::pause();
    std::_Exit(0);
  }
  char said = 0;
  ASSERT_EQ(::read(ready[0], &said, 1), 1);
  ASSERT_EQ(said, 'y');
  EXPECT_FALSE(take_netns_lock(name));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(take_netns_lock(name));
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace fabric::kernel
