#include <fabric/crypto/encoding.hpp>
#include <fabric/gateway/tunnel_frame.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

namespace fabric::gateway {

namespace {

using crypto::Bytes;
using crypto::ByteView;
using crypto::Checked;
using crypto::Reader;
using crypto::Reject;
using crypto::Writer;

/// magic ‖ number of MACs ‖ (PSK number ‖ fingerprint ‖ MAC)... ‖ kind ‖ (length ‖ bytes)...
/// A MAC covers magic, kind and what follows.
constexpr std::array<std::uint8_t, 4> kMagic = {'F', 'B', 'R', '1'};
constexpr std::size_t kMaxMacs = 4;
constexpr std::size_t kMacSize = 32;
constexpr std::uint8_t kAnnouncement = 1;
constexpr std::uint8_t kReceipt = 2;
/// Two key records and the state; a receipt has as many.
constexpr std::size_t kMaxParts = 6;
/// The longest name of a node (RFC 1123 subdomain).
constexpr std::size_t kMaxName = 253;

void put_part(Writer& out, ByteView part) {
  out.number(static_cast<std::uint32_t>(part.size()));
  out.raw(part);
}

Bytes body_of(const RawAnnouncement& raw) {
  Writer body;
  body.number(kAnnouncement);
  for (const auto& key : raw.keys)
    put_part(body, key);
  put_part(body, raw.state);
  return std::move(body).take();
}

Bytes body_of(const Receipt& receipt) {
  Writer counter;
  counter.number(receipt.counter);
  Writer body;
  body.number(kReceipt);
  put_part(body, crypto::view_of(receipt.from.cluster));
  put_part(body, crypto::view_of(receipt.from.gateway));
  put_part(body, receipt.instance.value());
  put_part(body, crypto::view_of(receipt.owner.cluster));
  put_part(body, crypto::view_of(receipt.owner.gateway));
  put_part(body, counter.bytes());
  return std::move(body).take();
}

Bytes covered(ByteView body) {
  Writer message;
  message.raw(kMagic);
  message.raw(body);
  return std::move(message).take();
}

std::optional<std::vector<ByteView>> parts_of(ByteView body) {
  std::vector<ByteView> parts;
  for (Reader in(body); in.left() > 0;) {
    const auto part = in.raw(in.number<std::uint32_t>());
    if (!in.ok() || parts.size() == kMaxParts) return std::nullopt;
    parts.push_back(part);
  }
  return parts;
}

Checked<Frame> announcement_of(const std::vector<ByteView>& parts) {
  if (parts.size() < 2 || parts.size() > 3) return std::unexpected(Reject::malformed);
  RawAnnouncement raw;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (parts[i].size() > crypto::kMaxKeyRecord) return std::unexpected(Reject::oversized);
    raw.keys.emplace_back(parts[i].begin(), parts[i].end());
  }
  raw.state.assign(parts.back().begin(), parts.back().end());
  return raw;
}

std::optional<std::string> name_of(ByteView part) {
  if (part.empty() || part.size() > kMaxName) return std::nullopt;
  return std::string(part.begin(), part.end());
}

Checked<Frame> receipt_of(const std::vector<ByteView>& parts) {
  std::array<std::uint8_t, 16> instance{};
  if (parts.size() != 6 || parts[2].size() != instance.size() || parts[5].size() != sizeof(std::uint64_t))
    return std::unexpected(Reject::malformed);
  const auto from_cluster = name_of(parts[0]);
  const auto from_gateway = name_of(parts[1]);
  const auto owner_cluster = name_of(parts[3]);
  const auto owner_gateway = name_of(parts[4]);
  if (!from_cluster || !from_gateway || !owner_cluster || !owner_gateway) return std::unexpected(Reject::malformed);
  std::ranges::copy(parts[2], instance.begin());
  return Receipt{.from = {*from_cluster, *from_gateway},
                 .instance = crypto::InstanceId(instance),
                 .owner = {*owner_cluster, *owner_gateway},
                 .counter = Reader(parts[5]).number<std::uint64_t>()};
}

/// The body, once a MAC of a PSK that we hold is right.
Checked<ByteView> authentic_body(ByteView bytes, const crypto::PskSet& psks) {
  Reader in(bytes);
  const bool ours = std::ranges::equal(in.raw(kMagic.size()), kMagic);
  const auto count = in.number<std::uint8_t>();
  if (!ours || count == 0 || count > kMaxMacs) return std::unexpected(Reject::malformed);
  const crypto::Psk* psk = nullptr;
  ByteView right;
  for (std::size_t i = 0; i < count; ++i) {
    crypto::PskId id{.number = in.number<std::uint32_t>(), .fingerprint = {}};
    id.fingerprint = in.array<std::tuple_size_v<decltype(id.fingerprint)>>();
    const auto mac = in.raw(kMacSize);
    if (const auto* held = psks.find(id); held != nullptr && psk == nullptr) {
      psk = held;
      right = mac;
    }
  }
  if (!in.ok()) return std::unexpected(Reject::malformed);
  if (psk == nullptr) return std::unexpected(Reject::unknown_psk);
  const auto body = in.raw(in.left());
  if (!psk->check(covered(body), right)) return std::unexpected(Reject::bad_mac);
  return body;
}

}  // namespace

Checked<Bytes> seal_frame(const Frame& frame, const crypto::PskSet& psks) {
  const auto body = std::visit([](const auto& content) { return body_of(content); }, frame);
  const auto message = covered(body);
  const auto ids = psks.ids();
  Writer out;
  out.raw(kMagic);
  out.number(static_cast<std::uint8_t>(ids.size()));
  for (const auto& id : ids) {
    out.number(id.number);
    out.raw(id.fingerprint);
    out.raw(psks.find(id)->mac(message));
  }
  out.raw(body);
  if (out.bytes().size() > kMaxFrame) return std::unexpected(Reject::oversized);
  return std::move(out).take();
}

Checked<Frame> open_frame(ByteView bytes, const crypto::PskSet& psks) {
  if (bytes.size() > kMaxFrame) return std::unexpected(Reject::oversized);
  const auto body = authentic_body(bytes, psks);
  if (!body) return std::unexpected(body.error());
  if (body->empty()) return std::unexpected(Reject::malformed);
  const auto parts = parts_of(body->subspan(1));
  if (!parts) return std::unexpected(Reject::malformed);
  if (body->front() == kAnnouncement) return announcement_of(*parts);
  if (body->front() == kReceipt) return receipt_of(*parts);
  return std::unexpected(Reject::malformed);
}

}  // namespace fabric::gateway
