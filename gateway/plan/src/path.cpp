#include <fabric/gateway/path.hpp>

#include <algorithm>

namespace fabric::gateway {

namespace {

const net::IpAddress* first_of(const std::vector<net::IpAddress>& addresses, net::Family family) {
  const auto found = std::ranges::find(addresses, family, &net::IpAddress::family);
  return found == addresses.end() ? nullptr : &*found;
}

}  // namespace

std::optional<Path> choose_path(const LocalEnd& local, const crypto::StateRecord& remote) {
  for (const auto family : {net::Family::ipv4, net::Family::ipv6}) {
    const auto* own = first_of(local.addresses, family);
    const auto* outside = remote.nat ? first_of(remote.public_addresses, family) : nullptr;
    const auto* other = outside != nullptr ? outside : first_of(remote.private_addresses, family);
    if (own == nullptr || other == nullptr) continue;
    Path path{.local = *own, .remote = *other, .encap = std::nullopt};
    if (local.nat || remote.nat) path.encap = netstate::UdpEncap{.sport = local.natt_port, .dport = remote.natt_port};
    return path;
  }
  return std::nullopt;
}

}  // namespace fabric::gateway
