#pragma once

#include <fabric/netstate/ownership.hpp>
#include <fabric/netstate/state.hpp>

#include <memory>
#include <string_view>

namespace fabric::netstate::test {

inline IpAddress ip(std::string_view text) {
  return IpAddress::parse(text).value();
}

inline Cidr cidr(std::string_view text) {
  return Cidr::parse(text).value();
}

inline KeyMaterial key_material(std::uint8_t fill = 1) {
  Secret secret(kKeyMaterialBytes);
  for (auto& byte : secret.writable())
    byte = fill;
  return std::make_shared<const Secret>(std::move(secret));
}

inline SaKey sa_key(std::string_view daddr, std::uint32_t spi) {
  return {ip(daddr), Spi(spi)};
}

inline Sa sa(std::string_view saddr, std::uint32_t reqid, KeyMaterial key = key_material()) {
  Sa result;
  result.saddr = ip(saddr);
  result.reqid = Reqid(kReqidBase | reqid);
  result.key = std::move(key);
  return result;
}

inline PolicyKey policy_key(Direction direction, std::string_view src, std::string_view dst) {
  return {direction, cidr(src), cidr(dst)};
}

inline XfrmPolicy esp(std::string_view saddr, std::string_view daddr, std::uint32_t reqid) {
  return {kEspPriority, EspTemplate{ip(saddr), ip(daddr), Reqid(kReqidBase | reqid)}};
}

inline XfrmPolicy block() {
  return {kBlockPriority, BlockAction{}};
}

inline VxlanLink vxlan(std::string_view local = "192.0.2.1", std::uint32_t mtu = 1400) {
  return {kVxlanVni, kVxlanPort, ip(local), net::Mac{{2, 0, 0, 0, 0, 1}}, mtu};
}

}  // namespace fabric::netstate::test
