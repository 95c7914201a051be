#include <fabric/async/task_group.hpp>
#include <fabric/async/testing.hpp>
#include <fabric/gateway/encap_socket.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <unistd.h>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace fabric::gateway {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(EncapSocket, ABusyPortIsSaidAndTriedAgain) {
  async::TestLoop loop;
  const int other = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  ASSERT_EQ(::bind(other, reinterpret_cast<const sockaddr*>(&where), sizeof(where)), 0);
  socklen_t size = sizeof(where);
  ASSERT_EQ(::getsockname(other, reinterpret_cast<sockaddr*>(&where), &size), 0);
  const std::uint16_t port = ntohs(where.sin_port);

  std::vector<std::string> told;
  std::unique_ptr<EncapSocket> socket;
  const auto open = [&]() -> async::Task<Result<void>> {
    socket = co_await open_when_free(
        loop.executor(), loop.clock(), port, [] { return 0.5; },
        [&](std::string failure) { told.push_back(std::move(failure)); });
    co_return Result<void>();
  };
  async::TaskGroup group(loop.executor());
  group.spawn("open", open());
  loop.advance(5s);
  EXPECT_EQ(socket, nullptr);
  ASSERT_GE(told.size(), 2U);
  EXPECT_LE(told.size(), 6U) << "with backoff";
  EXPECT_THAT(told.back(), HasSubstr(std::to_string(port)));
  ::close(other);
  loop.advance(40s);
  EXPECT_NE(socket, nullptr);
  EXPECT_THAT(told.back(), IsEmpty());
}

}  // namespace
}  // namespace fabric::gateway
