#include <fabric/netstate/ownership.hpp>

#include <utility>

#include <netinet/in.h>

#include "codec.hpp"

namespace fabric::kernel::xfrm {

namespace {

using netstate::Direction;

std::uint8_t dir_of(Direction direction) {
  switch (direction) {
    case Direction::in:
      return XFRM_POLICY_IN;
    case Direction::out:
      return XFRM_POLICY_OUT;
    case Direction::fwd:
      return XFRM_POLICY_FWD;
  }
  return XFRM_POLICY_OUT;
}

std::optional<Direction> direction_of(std::uint8_t dir) {
  // Higher numbers are policies of single sockets.
  if (dir == XFRM_POLICY_IN) return Direction::in;
  if (dir == XFRM_POLICY_OUT) return Direction::out;
  if (dir == XFRM_POLICY_FWD) return Direction::fwd;
  return std::nullopt;
}

Result<xfrm_selector> selector(const netstate::PolicyKey& key) {
  if (key.src.family() != key.dst.family()) {
    return fail(Errc::invalid, "source {} and destination {} of a policy are of one family", key.src, key.dst);
  }
  xfrm_selector result{};
  result.saddr = to_kernel(key.src.address());
  result.daddr = to_kernel(key.dst.address());
  result.prefixlen_s = static_cast<std::uint8_t>(key.src.length());
  result.prefixlen_d = static_cast<std::uint8_t>(key.dst.length());
  result.family = to_kernel(key.src.family());
  return result;
}

xfrm_lifetime_cfg unlimited() {
  xfrm_lifetime_cfg cfg{};
  cfg.soft_byte_limit = XFRM_INF;
  cfg.hard_byte_limit = XFRM_INF;
  cfg.soft_packet_limit = XFRM_INF;
  cfg.hard_packet_limit = XFRM_INF;
  return cfg;
}

/// Selector and template may be of different families: the template's is that of the outer header.
xfrm_user_tmpl user_template(const netstate::EspTemplate& esp) {
  xfrm_user_tmpl result{};
  result.id.daddr = to_kernel(esp.daddr);
  result.id.proto = IPPROTO_ESP;
  result.saddr = to_kernel(esp.saddr);
  result.family = to_kernel(esp.daddr.family());
  result.reqid = esp.reqid.value();
  result.mode = XFRM_MODE_TUNNEL;
  // Algorithms are a property of the SA; a policy accepts all.
  result.aalgos = result.ealgos = result.calgos = ~0U;
  return result;
}

Result<void> encode_id(Batch& batch, std::uint16_t type, const netstate::PolicyKey& key) {
  xfrm_userpolicy_id body{};
  FABRIC_TRY(body.sel, selector(key));
  body.dir = dir_of(key.direction);
  batch.begin(type, NLM_F_REQUEST | NLM_F_ACK);
  batch.body(body);
  batch.end();
  return {};
}

std::optional<net::Cidr> prefix(const xfrm_address_t& address, std::uint16_t family, std::uint8_t length) {
  const auto parsed = from_kernel(address, family);
  if (!parsed) return std::nullopt;
  const auto cidr = net::Cidr::of(*parsed, length);
  return cidr ? std::optional(*cidr) : std::nullopt;
}

std::optional<netstate::PolicyKey> key_of(const xfrm_userpolicy_info& body) {
  const auto& sel = body.sel;
  // Ours select by prefixes only.
  if (sel.proto != 0 || sel.sport_mask != 0 || sel.dport_mask != 0 || sel.ifindex != 0) return std::nullopt;
  const auto direction = direction_of(body.dir);
  const auto src = prefix(sel.saddr, sel.family, sel.prefixlen_s);
  const auto dst = prefix(sel.daddr, sel.family, sel.prefixlen_d);
  if (!direction || !src || !dst) return std::nullopt;
  return netstate::PolicyKey{*direction, *src, *dst};
}

std::optional<netstate::EspTemplate> template_of(std::span<const std::uint8_t> value) {
  xfrm_user_tmpl tmpl{};
  if (value.size() != sizeof(tmpl) || !read_body(value, tmpl)) return std::nullopt;
  if (tmpl.id.proto != IPPROTO_ESP || tmpl.mode != XFRM_MODE_TUNNEL || !netstate::is_ours(tmpl.reqid) ||
      tmpl.id.spi != 0 || tmpl.optional != 0) {
    return std::nullopt;
  }
  const auto saddr = from_kernel(tmpl.saddr, tmpl.family);
  const auto daddr = from_kernel(tmpl.id.daddr, tmpl.family);
  if (!saddr || !daddr) return std::nullopt;
  return netstate::EspTemplate{*saddr, *daddr, netstate::Reqid(tmpl.reqid)};
}

/// What the attributes of a policy say.
struct Attributes {
  std::optional<netstate::EspTemplate> esp;
  bool has_template = false;
  bool foreign = false;  ///< A mark, an interface id or the sub policy type, which ours do not have.
};

Attributes read_attributes(std::span<const std::uint8_t> payload) {
  Attributes result;
  each_attribute(payload, sizeof(xfrm_userpolicy_info), [&](std::uint16_t type, std::span<const std::uint8_t> value) {
    if (type == XFRMA_TMPL) {
      result.has_template = true;
      result.esp = template_of(value);
    }
    if (type == XFRMA_MARK || type == XFRMA_IF_ID) result.foreign = true;
    xfrm_userpolicy_type policy_type{};
    if (type == XFRMA_POLICY_TYPE && read_body(value, policy_type) && policy_type.type != XFRM_POLICY_TYPE_MAIN) {
      result.foreign = true;
    }
  });
  return result;
}

}  // namespace

Result<void> encode_put(Batch& batch, const netstate::PolicyObject& object, bool replace) {
  const auto* esp = std::get_if<netstate::EspTemplate>(&object.policy.action);
  if (esp != nullptr && esp->saddr.family() != esp->daddr.family()) {
    return fail(Errc::invalid, "source {} and destination {} of a template are of one family", esp->saddr, esp->daddr);
  }
  xfrm_userpolicy_info body{};
  FABRIC_TRY(body.sel, selector(object.key));
  body.lft = unlimited();
  body.priority = object.policy.priority;
  body.dir = dir_of(object.key.direction);
  body.action = esp != nullptr ? XFRM_POLICY_ALLOW : XFRM_POLICY_BLOCK;
  body.share = XFRM_SHARE_ANY;

  batch.begin(replace ? XFRM_MSG_UPDPOLICY : XFRM_MSG_NEWPOLICY, NLM_F_REQUEST | NLM_F_ACK);
  batch.body(body);
  if (esp != nullptr) batch.attribute(XFRMA_TMPL, user_template(*esp));
  batch.end();
  return {};
}

Result<void> encode_remove(Batch& batch, const netstate::PolicyKey& key) {
  return encode_id(batch, XFRM_MSG_DELPOLICY, key);
}

Result<void> encode_get(Batch& batch, const netstate::PolicyKey& key) {
  return encode_id(batch, XFRM_MSG_GETPOLICY, key);
}

std::optional<netstate::PolicyObject> parse_policy(std::span<const std::uint8_t> payload) {
  xfrm_userpolicy_info body{};
  if (!read_body(payload, body)) return std::nullopt;
  const auto key = key_of(body);
  const auto attributes = read_attributes(payload);
  if (!key || attributes.foreign) return std::nullopt;
  if (attributes.esp && body.action == XFRM_POLICY_ALLOW) {
    return netstate::PolicyObject{*key, {body.priority, *attributes.esp}};
  }
  if (!attributes.has_template && body.action == XFRM_POLICY_BLOCK && body.priority == netstate::kBlockPriority) {
    return netstate::PolicyObject{*key, {body.priority, netstate::BlockAction{}}};
  }
  return std::nullopt;
}

}  // namespace fabric::kernel::xfrm
