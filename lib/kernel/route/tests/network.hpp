#pragma once

#include <fabric/base/assert.hpp>
#include <fabric/kernel/driver.hpp>
#include <fabric/netstate/diff.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <optional>
#include <sched.h>
#include <string>
#include <unistd.h>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/time.h>

/// Network namespaces, shell commands and packets for tests of kernel drivers. Needs root.
namespace fabric::kernel::test {

/// A network namespace, which lives as long as this object or a process in it.
class Namespace {
 public:
  /// Makes a new one and stays in it.
  static Namespace enter_new() {
    FABRIC_ASSERT(::unshare(CLONE_NEWNET) == 0);
    return Namespace(::open("/proc/thread-self/ns/net", O_RDONLY));  // Inherited by children: see path().
  }

  Namespace(Namespace&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  Namespace& operator=(Namespace&&) = delete;

  ~Namespace() {
    if (fd_ >= 0) ::close(fd_);
  }

  void enter() const { FABRIC_ASSERT(::setns(fd_, CLONE_NEWNET) == 0); }

  /// What `ip link set X netns` takes.
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  explicit Namespace(int fd) : fd_(fd) { FABRIC_ASSERT(fd >= 0); }

  int fd_;
};

/// Runs a shell command in the current namespace; its output, with errors.
inline std::string output_of(const std::string& command, int* status = nullptr) {
  std::string text;
  auto* pipe = ::popen(("exec 2>&1; " + command).c_str(), "r");
  FABRIC_ASSERT(pipe != nullptr);
  std::array<char, 4096> buffer{};
  for (std::size_t size = 0; (size = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    text.append(buffer.data(), size);
  }
  const int result = ::pclose(pipe);
  if (status != nullptr) *status = result;
  return text;
}

inline void run(const std::string& command) {
  int status = 0;
  const auto text = output_of("set -e; " + command, &status);
  ASSERT_EQ(status, 0) << command << "\n" << text;
}

/// Waits until all IPv6 addresses of the current namespace can be reached. The kernel installs the local route of an
/// address from a worker (addrconf_dad_work), also without duplicate detection; a packet that comes earlier is answered
/// by "no route". Nothing but that route tells, so it is looked for.
inline void await_addresses() {
  run("for a in $(ip -6 -o addr show | awk '{ sub(\"/.*\", \"\", $4); print $4 }'); do n=0; "
      "until ip -6 route show table local | grep -q \"^local $a dev\"; do n=$((n + 1)); "
      "[ $n -lt 2000 ] || { echo \"no local route to $a\"; exit 1; }; done; done");
}

/// Every test has a network namespace of its own; all tests of a process share a mount namespace with an empty /run.
class NetworkTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static const bool private_run = [] {
      return ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
             ::mount("run", "/run", "tmpfs", 0, nullptr) == 0;
    }();
    ASSERT_TRUE(private_run) << "these tests need root";
  }

  void SetUp() override { prepare(); }

  /// Addresses are usable at once and packets from anywhere are accepted.
  static void prepare() {
    run("ip link set lo up; cd /proc/sys/net; echo 0 > ipv6/conf/default/accept_dad; "
        "echo 0 > ipv6/conf/all/accept_dad; echo 0 > ipv4/conf/all/rp_filter; echo 0 > ipv4/conf/default/rp_filter");
  }

  /// Joins the current namespace by eth0 with eth0 of a new one, with 192.0.2.1 and fd00:ee::1 here, .2 and ::2 there.
  Namespace make_peer() {
    auto peer = Namespace::enter_new();
    prepare();
    home.enter();
    run("ip link add eth0 type veth peer name eth0 netns " + peer.path() +
        "; ip link set eth0 up; ip addr add 192.0.2.1/24 dev eth0; ip addr add fd00:ee::1/64 dev eth0 nodad");
    peer.enter();
    run("ip link set eth0 up; ip addr add 192.0.2.2/24 dev eth0; ip addr add fd00:ee::2/64 dev eth0 nodad");
    await_addresses();
    home.enter();
    await_addresses();
    return peer;
  }

  const Namespace home = Namespace::enter_new();
};

inline netstate::State observed(Driver& driver) {
  netstate::State state;
  const auto result = driver.observe(driver.slices(), state);
  EXPECT_TRUE(result) << result.error().message();
  return state;
}

/// Fails with the steps that lead from what was seen to what was wanted.
inline void expect_state(const netstate::State& seen, const netstate::State& wanted) {
  if (seen == wanted) return;
  std::string steps;
  for (const auto& step : netstate::diff(seen, wanted, netstate::Slices::all()).steps) {
    steps += "\n  " + netstate::describe(step);
  }
  ADD_FAILURE() << "missing:" << steps;
}

/// Drives a driver to a state, phase by phase as a composition does; expects every step to succeed. Returns how many
/// there were.
inline std::size_t converge(Driver& driver, const netstate::State& desired) {
  const auto script = netstate::diff(observed(driver), desired, driver.slices());
  for (std::size_t first = 0; first < script.steps.size();) {
    std::size_t last = first;
    while (last < script.steps.size() && script.steps[last].phase == script.steps[first].phase)
      ++last;
    const auto results = driver.apply(std::span(script.steps).subspan(first, last - first));
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_TRUE(results[i]) << netstate::describe(script.steps[first + i]) << ": " << results[i].error().message();
    }
    first = last;
  }
  return script.steps.size();
}

/// A UDP socket of the current namespace, which it keeps using after the thread went elsewhere.
class UdpSocket {
 public:
  explicit UdpSocket(const std::string& address, std::uint16_t port = 0) {
    const auto [where, size] = parse(address, port);
    fd_ = ::socket(where.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    FABRIC_ASSERT(fd_ >= 0);
    const timeval patience{.tv_sec = 5, .tv_usec = 0};
    FABRIC_ASSERT(::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
    FABRIC_ASSERT(::bind(fd_, reinterpret_cast<const sockaddr*>(&where), size) == 0);
  }

  UdpSocket(const UdpSocket&) = delete;
  UdpSocket& operator=(const UdpSocket&) = delete;

  ~UdpSocket() { ::close(fd_); }

  bool send(const std::string& address, std::uint16_t port) const {
    const auto [where, size] = parse(address, port);
    return ::sendto(fd_, "x", 1, 0, reinterpret_cast<const sockaddr*>(&where), size) == 1;
  }

  /// The source of the next packet; absent when none comes.
  std::optional<std::string> receive() const {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    char byte = 0;
    if (::recvfrom(fd_, &byte, 1, 0, reinterpret_cast<sockaddr*>(&from), &size) != 1) return std::nullopt;
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* address = &reinterpret_cast<const sockaddr_in*>(&from)->sin_addr;
    if (from.ss_family == AF_INET6) address = &reinterpret_cast<const sockaddr_in6*>(&from)->sin6_addr;
    return ::inet_ntop(from.ss_family, address, text.data(), text.size());
  }

 private:
  static std::pair<sockaddr_storage, socklen_t> parse(const std::string& address, std::uint16_t port) {
    sockaddr_storage where{};
    auto& v4 = reinterpret_cast<sockaddr_in&>(where);
    auto& v6 = reinterpret_cast<sockaddr_in6&>(where);
    if (::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
      v4.sin_family = AF_INET;
      v4.sin_port = htons(port);
      return {where, sizeof v4};
    }
    FABRIC_ASSERT(::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    return {where, sizeof v6};
  }

  int fd_ = -1;
};

inline net::Cidr cidr(std::string_view text) {
  return *net::Cidr::parse(text);
}

inline net::IpAddress ip(std::string_view text) {
  return *net::IpAddress::parse(text);
}

inline net::Mac mac(std::string_view text) {
  return *net::Mac::parse(text);
}

}  // namespace fabric::kernel::test
