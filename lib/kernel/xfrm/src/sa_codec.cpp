#include <fabric/netstate/ownership.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>

#include "codec.hpp"

namespace fabric::kernel::xfrm {

namespace {

constexpr std::uint32_t kIcvBits = 128;
constexpr std::uint32_t kBitsPerWord = 32;

struct AeadName {
  netstate::Aead aead;
  std::string_view name;
};

/// Names of RFC 4106 and RFC 7634 in the kernel's crypto API (net/xfrm/xfrm_algo.c).
constexpr std::array kAeads{AeadName{netstate::Aead::aes_gcm_256, "rfc4106(gcm(aes))"},
                            AeadName{netstate::Aead::chacha20_poly1305, "rfc7539esp(chacha20,poly1305)"}};

/// The fixed part of XFRMA_ALG_AEAD; the key follows.
xfrm_algo_aead aead_header(netstate::Aead aead, std::size_t key_bytes) {
  xfrm_algo_aead header{};
  const auto found = std::ranges::find(kAeads, aead, &AeadName::aead);
  std::ranges::copy(found->name, header.alg_name);
  header.alg_key_len = static_cast<unsigned>(key_bytes * 8);
  header.alg_icv_len = kIcvBits;
  return header;
}

xfrm_lifetime_cfg lifetime(const netstate::Sa& sa) {
  const auto limit = [](std::uint64_t value) { return value == 0 ? XFRM_INF : value; };
  xfrm_lifetime_cfg cfg{};
  cfg.soft_byte_limit = limit(sa.soft_bytes);
  cfg.hard_byte_limit = XFRM_INF;
  cfg.soft_packet_limit = limit(sa.soft_packets);
  cfg.hard_packet_limit = limit(sa.hard_packets);
  cfg.hard_add_expires_seconds = sa.hard_seconds;
  return cfg;
}

std::uint64_t sequence(std::uint32_t high, std::uint32_t low) {
  return (std::uint64_t{high} << 32U) | low;
}

TimePoint from_seconds(std::uint64_t seconds) {
  return TimePoint(std::chrono::seconds(seconds));
}

void read_aead(std::span<const std::uint8_t> value, std::optional<netstate::Aead>& into) {
  if (value.size() < sizeof(xfrm_algo_aead::alg_name)) return;
  const auto name = value.first(sizeof(xfrm_algo_aead::alg_name));
  const auto end = std::ranges::find(name, std::uint8_t{0});
  const std::string_view text(reinterpret_cast<const char*>(name.data()), static_cast<std::size_t>(end - name.begin()));
  const auto found = std::ranges::find(kAeads, text, &AeadName::name);
  if (found != kAeads.end()) into = found->aead;
}

void read_attribute(std::uint16_t type, std::span<const std::uint8_t> value, netstate::Sa& sa,
                    std::optional<netstate::Aead>& aead) {
  if (type == XFRMA_ALG_AEAD) read_aead(value, aead);
  if (xfrm_encap_tmpl encap{}; type == XFRMA_ENCAP && read_body(value, encap)) {
    sa.encap = netstate::UdpEncap{ntohs(encap.encap_sport), ntohs(encap.encap_dport)};
  }
  if (xfrm_replay_state_esn esn{}; type == XFRMA_REPLAY_ESN_VAL && read_body(value, esn)) {
    sa.replay_window = esn.replay_window;
    sa.counters->sent_sequence = sequence(esn.oseq_hi, esn.oseq);
    sa.counters->received_sequence = sequence(esn.seq_hi, esn.seq);
  }
  if (std::uint64_t used = 0; type == XFRMA_LASTUSED && read_body(value, used)) {
    sa.counters->last_used = from_seconds(used);
  }
}

}  // namespace

xfrm_address_t to_kernel(const net::IpAddress& address) {
  xfrm_address_t result{};
  std::memcpy(&result, address.bytes().data(), address.bytes().size());
  return result;
}

std::uint16_t to_kernel(net::Family family) {
  return family == net::Family::ipv4 ? AF_INET : AF_INET6;
}

std::optional<net::IpAddress> from_kernel(const xfrm_address_t& address, std::uint16_t family) {
  if (family != AF_INET && family != AF_INET6) return std::nullopt;
  const auto parsed = net::IpAddress::from_bytes(bytes_of(address).first(family == AF_INET ? 4 : 16));
  return parsed ? std::optional(*parsed) : std::nullopt;
}

namespace {

/// What all SAs have in common, with extended sequence numbers or without; the callers check the key.
Result<void> encode_sa(Batch& batch, const netstate::SaObject& object, bool extended) {
  const auto& sa = object.sa;
  if (sa.saddr.family() != object.key.daddr.family()) {
    return fail(Errc::invalid, "source and destination of an SA are of one family");
  }
  xfrm_usersa_info body{};
  body.id = {.daddr = to_kernel(object.key.daddr), .spi = htonl(object.key.spi.value()), .proto = IPPROTO_ESP};
  body.saddr = to_kernel(sa.saddr);
  body.lft = lifetime(sa);
  body.reqid = sa.reqid.value();
  body.family = to_kernel(object.key.daddr.family());
  body.mode = XFRM_MODE_TUNNEL;
  // AF_UNSPEC with an empty selector lets one SA carry inner packets of both families (copy_from_user_state()). The
  // window is in XFRMA_REPLAY_ESN_VAL, with ESN and without, and must be zero here.
  body.flags = static_cast<std::uint8_t>(XFRM_STATE_AF_UNSPEC | (extended ? XFRM_STATE_ESN : 0));

  batch.begin(XFRM_MSG_NEWSA, NLM_F_REQUEST | NLM_F_ACK);
  batch.body(body);
  const auto aead = aead_header(sa.aead, sa.key->size());
  batch.attribute(XFRMA_ALG_AEAD, {bytes_of(aead), sa.key->reveal()});
  // Without the bitmap: the kernel allocates it by bmp_len, all zero (xfrm_alloc_replay_state_esn()).
  xfrm_replay_state_esn esn{};
  esn.bmp_len = (sa.replay_window + kBitsPerWord - 1) / kBitsPerWord;
  esn.replay_window = sa.replay_window;
  batch.attribute(XFRMA_REPLAY_ESN_VAL, esn);
  if (sa.encap) {
    xfrm_encap_tmpl encap{};
    encap.encap_type = UDP_ENCAP_ESPINUDP;
    encap.encap_sport = htons(sa.encap->sport);
    encap.encap_dport = htons(sa.encap->dport);
    batch.attribute(XFRMA_ENCAP, encap);
  }
  batch.end();
  return {};
}

}  // namespace

Result<void> encode_add(Batch& batch, const netstate::SaObject& object) {
  const auto& key = object.sa.key;
  if (key == nullptr || key->size() != netstate::kKeyMaterialBytes) {
    return fail(Errc::invalid, "an SA needs {} bytes of key material", netstate::kKeyMaterialBytes);
  }
  return encode_sa(batch, object, true);
}

Result<void> encode_add_static(Batch& batch, const netstate::SaObject& object) {
  const auto& key = object.sa.key;
  if (netstate::is_ours(object.sa.reqid.value())) {
    return fail(Errc::invalid, "reqid {:#x} belongs to the agents", object.sa.reqid.value());
  }
  if (key == nullptr || (key->size() != kShortKeyMaterialBytes && key->size() != netstate::kKeyMaterialBytes)) {
    return fail(Errc::invalid, "a static SA needs {} or {} bytes of key material", kShortKeyMaterialBytes,
                netstate::kKeyMaterialBytes);
  }
  return encode_sa(batch, object, false);
}

void encode_remove(Batch& batch, const netstate::SaKey& key) {
  xfrm_usersa_id body{};
  body.daddr = to_kernel(key.daddr);
  body.spi = htonl(key.spi.value());
  body.family = to_kernel(key.daddr.family());
  body.proto = IPPROTO_ESP;
  batch.begin(XFRM_MSG_DELSA, NLM_F_REQUEST | NLM_F_ACK);
  batch.body(body);
  batch.end();
}

std::optional<netstate::SaObject> parse_sa(std::span<const std::uint8_t> payload) {
  xfrm_usersa_info body{};
  if (!read_body(payload, body)) return std::nullopt;
  // A larval state, made for a packet that waits for an SA, has the reqid of the policy but no SPI.
  if (!netstate::is_ours(body.reqid) || body.id.proto != IPPROTO_ESP || body.mode != XFRM_MODE_TUNNEL ||
      body.id.spi == 0) {
    return std::nullopt;
  }
  const auto daddr = from_kernel(body.id.daddr, body.family);
  const auto saddr = from_kernel(body.saddr, body.family);
  if (!daddr || !saddr) return std::nullopt;

  const auto limit = [](std::uint64_t value) { return value == XFRM_INF ? 0 : value; };
  netstate::Sa sa;
  sa.saddr = *saddr;
  sa.reqid = netstate::Reqid(body.reqid);
  sa.replay_window = body.replay_window;
  sa.soft_packets = limit(body.lft.soft_packet_limit);
  sa.hard_packets = limit(body.lft.hard_packet_limit);
  sa.soft_bytes = limit(body.lft.soft_byte_limit);
  sa.hard_seconds = body.lft.hard_add_expires_seconds;
  sa.counters = netstate::SaCounters{};
  sa.counters->packets = body.curlft.packets;
  sa.counters->bytes = body.curlft.bytes;
  sa.counters->added = from_seconds(body.curlft.add_time);

  std::optional<netstate::Aead> aead;
  each_attribute(payload, sizeof(body), [&](std::uint16_t type, std::span<const std::uint8_t> value) {
    read_attribute(type, value, sa, aead);
  });
  if (!aead) return std::nullopt;
  sa.aead = *aead;
  return netstate::SaObject{{*daddr, netstate::Spi(ntohl(body.id.spi))}, std::move(sa)};
}

}  // namespace fabric::kernel::xfrm
