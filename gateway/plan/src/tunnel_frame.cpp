#include <fabric/gateway/tunnel_frame.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>

namespace fabric::gateway {

namespace {

using crypto::Bytes;
using crypto::ByteView;
using crypto::Checked;
using crypto::Reject;

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

template <class T>
void put_number(Bytes& out, T value) {
  for (std::size_t i = sizeof(T); i-- > 0;)
    out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

void put_part(Bytes& out, ByteView part) {
  put_number(out, static_cast<std::uint32_t>(part.size()));
  out.insert(out.end(), part.begin(), part.end());
}

template <class T>
T number_of(ByteView bytes) {
  T value = 0;
  for (const auto byte : bytes)
    value = static_cast<T>(static_cast<T>(value << 8U) | byte);
  return value;
}

/// Empty, and everything after it too, when there are not so many bytes left.
std::optional<ByteView> cut(ByteView& rest, std::size_t size) {
  if (rest.size() < size) return std::nullopt;
  const auto head = rest.first(size);
  rest = rest.subspan(size);
  return head;
}

Bytes body_of(const RawAnnouncement& raw) {
  Bytes body{kAnnouncement};
  for (const auto& key : raw.keys)
    put_part(body, key);
  put_part(body, raw.state);
  return body;
}

Bytes body_of(const Receipt& receipt) {
  Bytes body{kReceipt};
  put_part(body, crypto::view_of(receipt.from.cluster));
  put_part(body, crypto::view_of(receipt.from.gateway));
  put_part(body, receipt.instance.value());
  put_part(body, crypto::view_of(receipt.owner.cluster));
  put_part(body, crypto::view_of(receipt.owner.gateway));
  Bytes counter;
  put_number(counter, receipt.counter);
  put_part(body, counter);
  return body;
}

Bytes covered(ByteView body) {
  Bytes message(kMagic.begin(), kMagic.end());
  message.insert(message.end(), body.begin(), body.end());
  return message;
}

std::optional<std::vector<ByteView>> parts_of(ByteView rest) {
  std::vector<ByteView> parts;
  while (!rest.empty()) {
    const auto size = cut(rest, sizeof(std::uint32_t));
    if (!size || parts.size() == kMaxParts) return std::nullopt;
    const auto part = cut(rest, number_of<std::uint32_t>(*size));
    if (!part) return std::nullopt;
    parts.push_back(*part);
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
                 .counter = number_of<std::uint64_t>(parts[5])};
}

/// The body, once a MAC of a PSK that we hold is right.
Checked<ByteView> authentic_body(ByteView bytes, const crypto::PskSet& psks) {
  const auto magic = cut(bytes, kMagic.size());
  if (!magic || !std::ranges::equal(*magic, kMagic)) return std::unexpected(Reject::malformed);
  const auto count = cut(bytes, 1);
  if (!count || count->front() == 0 || count->front() > kMaxMacs) return std::unexpected(Reject::malformed);
  const crypto::Psk* psk = nullptr;
  ByteView right;
  for (std::size_t i = 0; i < count->front(); ++i) {
    crypto::PskId id;
    const auto number = cut(bytes, sizeof id.number);
    const auto fingerprint = cut(bytes, id.fingerprint.size());
    const auto mac = cut(bytes, kMacSize);
    if (!number || !fingerprint || !mac) return std::unexpected(Reject::malformed);
    id.number = number_of<std::uint32_t>(*number);
    std::ranges::copy(*fingerprint, id.fingerprint.begin());
    if (const auto* held = psks.find(id); held != nullptr && psk == nullptr) {
      psk = held;
      right = *mac;
    }
  }
  if (psk == nullptr) return std::unexpected(Reject::unknown_psk);
  if (!psk->check(covered(bytes), right)) return std::unexpected(Reject::bad_mac);
  return bytes;
}

}  // namespace

Checked<Bytes> seal_frame(const Frame& frame, const crypto::PskSet& psks) {
  const auto body = std::visit([](const auto& content) { return body_of(content); }, frame);
  const auto message = covered(body);
  const auto ids = psks.ids();
  Bytes out(kMagic.begin(), kMagic.end());
  put_number(out, static_cast<std::uint8_t>(ids.size()));
  for (const auto& id : ids) {
    put_number(out, id.number);
    out.insert(out.end(), id.fingerprint.begin(), id.fingerprint.end());
    const auto mac = psks.find(id)->mac(message);
    out.insert(out.end(), mac.begin(), mac.end());
  }
  out.insert(out.end(), body.begin(), body.end());
  if (out.size() > kMaxFrame) return std::unexpected(Reject::oversized);
  return out;
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
