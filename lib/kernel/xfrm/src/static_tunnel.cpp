#include <fabric/kernel/static_tunnel.hpp>
#include <fabric/netstate/ownership.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "codec.hpp"
#include "netlink.hpp"

namespace fabric::kernel {

namespace {

using netstate::Direction;
using netstate::PolicyObject;
using netstate::SaObject;
using xfrm::Ack;
using xfrm::Batch;
using xfrm::Socket;

/// Behind all policies of the agents: a static key never carries what they carry or block.
constexpr std::uint32_t kStaticPriority = netstate::kBlockPriority + 100;

/// Inbound first; the last one makes traffic flow, so that a failure before it has encrypted nothing.
std::array<SaObject, 2> sas_of(const StaticTunnel& tunnel, const netstate::KeyMaterial& key) {
  std::array<SaObject, 2> result{SaObject{{tunnel.local, tunnel.spi}, {}}, SaObject{{tunnel.remote, tunnel.spi}, {}}};
  result[0].sa.saddr = tunnel.remote;
  result[1].sa.saddr = tunnel.local;
  for (SaObject& each : result) {
    each.sa.reqid = tunnel.reqid;
    each.sa.key = key;
  }
  return result;
}

std::array<PolicyObject, 3> policies_of(const StaticTunnel& tunnel) {
  const netstate::XfrmPolicy out{kStaticPriority, netstate::EspTemplate{tunnel.local, tunnel.remote, tunnel.reqid}};
  const netstate::XfrmPolicy in{kStaticPriority, netstate::EspTemplate{tunnel.remote, tunnel.local, tunnel.reqid}};
  return {PolicyObject{{Direction::in, tunnel.remote_prefix, tunnel.local_prefix}, in},
          PolicyObject{{Direction::fwd, tunnel.remote_prefix, tunnel.local_prefix}, in},
          PolicyObject{{Direction::out, tunnel.local_prefix, tunnel.remote_prefix}, out}};
}

/// In the order of installation: without an SA, a policy drops packets instead of sending them in clear.
std::vector<netstate::Object> objects_of(const StaticTunnel& tunnel, const netstate::KeyMaterial& key) {
  std::vector<netstate::Object> result;
  for (const PolicyObject& each : policies_of(tunnel))
    result.emplace_back(each);
  for (SaObject& each : sas_of(tunnel, key))
    result.emplace_back(std::move(each));
  return result;
}

Result<std::vector<xfrm_usersa_info>> read_sas(Socket& socket) {
  Batch request;
  request.begin(XFRM_MSG_GETSA, NLM_F_REQUEST | NLM_F_DUMP);
  request.end();
  std::vector<xfrm_usersa_info> result;
  const auto on_sa = [&](const xfrm::Message& message) {
    xfrm_usersa_info body{};
    if (xfrm::read_body(message.payload, body) && body.id.proto == IPPROTO_ESP) result.push_back(body);
  };
  FABRIC_CHECK(socket.dump(request, on_sa, [&] { result.clear(); }).with("reading SAs"));
  return result;
}

Result<Ack> execute(Socket& socket, Batch& batch, const Socket::OnMessage& on_message = {}) {
  FABRIC_TRY(auto acks, socket.execute(batch, on_message));
  return std::move(acks.front());
}

/// Adds or removes one object.
Result<void> change(Socket& socket, netstate::Verb verb, const netstate::Object& object) {
  const bool add = verb == netstate::Verb::add;
  Batch batch;
  if (const auto* sa = std::get_if<SaObject>(&object)) {
    if (add) FABRIC_CHECK(xfrm::encode_add_static(batch, *sa));
    if (!add) xfrm::encode_remove(batch, sa->key);
  } else {
    const auto& policy = std::get<PolicyObject>(object);
    FABRIC_CHECK(add ? xfrm::encode_put(batch, policy, false) : xfrm::encode_remove(batch, policy.key));
  }
  FABRIC_TRY(const Ack ack, execute(socket, batch));
  if (ack.error == 0) return {};
  return xfrm::fail_ack(ack, netstate::describe({.verb = verb, .object = object}));
}

Result<void> expect_unused(Socket& socket, const StaticTunnel& tunnel) {
  FABRIC_TRY(const auto sas, read_sas(socket));
  for (const xfrm_usersa_info& sa : sas) {
    if (ntohl(sa.id.spi) == tunnel.spi.value()) {
      return fail(Errc::already_exists,
                  "an SA with SPI {} exists already (ip xfrm state): it is never added again, as that would use its "
                  "nonces again; take it down, and come up with a new key and another SPI",
                  tunnel.spi);
    }
    if (sa.reqid == tunnel.reqid.value()) {
      return fail(Errc::already_exists, "an SA with reqid {} exists already (ip xfrm state): choose another --reqid",
                  tunnel.reqid);
    }
  }
  return {};
}

/// Whether the policy is there; Errc::conflict when it is there and not of this tunnel.
Result<bool> find(Socket& socket, const PolicyObject& wanted) {
  std::uint32_t reqid = 0;
  std::uint32_t priority = 0;
  Batch batch;
  FABRIC_CHECK(xfrm::encode_get(batch, wanted.key));
  FABRIC_TRY(const Ack ack, execute(socket, batch, [&](const xfrm::Message& message) {
               xfrm_userpolicy_info body{};
               if (xfrm::read_body(message.payload, body)) priority = body.priority;
               xfrm::each_attribute(message.payload, sizeof(body), [&](std::uint16_t type, auto value) {
                 xfrm_user_tmpl tmpl{};
                 if (type == XFRMA_TMPL && xfrm::read_body(value, tmpl)) reqid = tmpl.reqid;
               });
             }));
  if (ack.error == ENOENT || ack.error == ESRCH) return false;
  if (ack.error != 0) return xfrm::fail_ack(ack, "reading an IPsec policy");
  const auto& esp = std::get<netstate::EspTemplate>(wanted.policy.action);
  if (reqid == esp.reqid.value() && priority == wanted.policy.priority) return true;
  return fail(Errc::conflict, "the policy {} to {} is not of this tunnel: it has reqid {}, priority {}", wanted.key.src,
              wanted.key.dst, reqid, priority);
}

/// As find() for policies.
Result<bool> find(const std::vector<xfrm_usersa_info>& sas, const SaObject& wanted) {
  for (const xfrm_usersa_info& sa : sas) {
    const auto daddr = xfrm::from_kernel(sa.id.daddr, sa.family);
    if (daddr != wanted.key.daddr || ntohl(sa.id.spi) != wanted.key.spi.value()) continue;
    if (sa.reqid == wanted.sa.reqid.value() && xfrm::from_kernel(sa.saddr, sa.family) == wanted.sa.saddr) return true;
    return fail(Errc::conflict, "the SA to {} with SPI {} is not of this tunnel: it has reqid {} or another source",
                wanted.key.daddr, wanted.key.spi, sa.reqid);
  }
  return false;
}

}  // namespace

Result<void> check_static_tunnel(const StaticTunnel& tunnel) {
  if (tunnel.local.family() != tunnel.remote.family() || tunnel.local == tunnel.remote) {
    return fail(Errc::invalid, "--local {} and --remote {}: expected two addresses of one family", tunnel.local,
                tunnel.remote);
  }
  for (const auto& address : {tunnel.local, tunnel.remote}) {
    if (address.is_unspecified() || address.is_multicast() || address.is_loopback()) {
      return fail(Errc::invalid, "--local or --remote {}: expected the address of a node", address);
    }
  }
  if (tunnel.local_prefix.family() != tunnel.remote_prefix.family() ||
      tunnel.local_prefix.overlaps(tunnel.remote_prefix)) {
    return fail(Errc::invalid, "--local-prefix {} and --remote-prefix {}: expected two of one family, without overlap",
                tunnel.local_prefix, tunnel.remote_prefix);
  }
  if (tunnel.spi.value() == 0) return fail(Errc::invalid, "--spi 0: expected 1..4294967295, better above 255");
  if (tunnel.reqid.value() == 0 || netstate::is_ours(tunnel.reqid.value())) {
    return fail(Errc::invalid,
                "--reqid {:#x} (by default the SPI): expected neither 0 nor one of 0x46000000..0x46ffffff, which "
                "belong to the agents",
                tunnel.reqid.value());
  }
  return {};
}

Result<void> add_static_tunnel(const StaticTunnel& tunnel, const netstate::KeyMaterial& key) {
  FABRIC_CHECK(check_static_tunnel(tunnel));
  FABRIC_TRY(Socket socket, Socket::open());
  FABRIC_CHECK(expect_unused(socket, tunnel));
  const auto objects = objects_of(tunnel, key);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    auto added = change(socket, netstate::Verb::add, objects[i]);
    if (added) continue;
    while (i-- > 0) {
      const auto undone = change(socket, netstate::Verb::remove, objects[i]);
      if (!undone) added = std::move(added).with(fmt::format("left behind: {}", undone.error()));
    }
    return added;
  }
  return {};
}

Result<int> remove_static_tunnel(const StaticTunnel& tunnel) {
  FABRIC_CHECK(check_static_tunnel(tunnel));
  FABRIC_TRY(Socket socket, Socket::open());
  FABRIC_TRY(const auto sas, read_sas(socket));
  std::vector<netstate::Object> there;
  for (const SaObject& each : sas_of(tunnel, nullptr)) {
    FABRIC_TRY(const bool found, find(sas, each));
    if (found) there.emplace_back(each);
  }
  for (const PolicyObject& each : policies_of(tunnel)) {
    FABRIC_TRY(const bool found, find(socket, each));
    if (found) there.emplace_back(each);
  }
  for (const netstate::Object& each : there)
    FABRIC_CHECK(change(socket, netstate::Verb::remove, each));
  return static_cast<int>(there.size());
}

}  // namespace fabric::kernel
