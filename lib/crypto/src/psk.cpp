#include <fabric/crypto/encoding.hpp>
#include <fabric/crypto/psk.hpp>

#include <fmt/format.h>

#include <charconv>

namespace fabric::crypto {

namespace {

Secret expand(const Secret& prk, std::string_view label, std::string_view cluster_set, std::size_t size) {
  const std::string whole = std::string(label) + std::string(cluster_set);
  return hkdf_expand(prk, view_of(whole), size);
}

Bytes identity_message(std::string_view cluster_id, const Ed25519Public& identity) {
  Writer out;
  out.text("fabric/v1 identity");
  out.text(cluster_id);
  out.raw(identity.value());
  return std::move(out).take();
}

Bytes join_message(std::string_view cluster_id, const X25519Public& reply_key, const Ed25519Public& identity) {
  Writer out;
  out.text("fabric/v1 join request");
  out.text(cluster_id);
  out.raw(reply_key.value());
  out.raw(identity.value());
  return std::move(out).take();
}

bool any_made(const PskSet& psks, ByteView message, ByteView mac) {
  bool made = false;
  for (const auto& id : psks.ids())
    made = psks.find(id)->check(message, mac) || made;
  return made;
}

}  // namespace

std::string PskId::to_string() const {
  return fmt::format("{}:{:02x}", number, fmt::join(fingerprint, ""));
}

Result<Psk> Psk::make(std::uint32_t number, const Secret& psk, std::string_view cluster_set) {
  if (psk.size() < kMinPskSize) {
    return fail(Errc::invalid, "a PSK has at least {} bytes, this one {}: let the broker draw one", kMinPskSize,
                psk.size());
  }
  const auto prk = hkdf_extract(view_of("fabric/v1"), psk.reveal());
  PskId id{.number = number, .fingerprint = {}};
  std::ranges::copy(hkdf_expand(prk, view_of("fabric/v1 id"), id.fingerprint.size()).reveal(), id.fingerprint.begin());
  return Psk(id, expand(prk, "fabric/v1 auth", cluster_set, 32), expand(prk, "fabric/v1 mix", cluster_set, 32));
}

Digest Psk::mac(ByteView message) const {
  return hmac_sha256(auth_.reveal(), message);
}

bool Psk::check(ByteView message, ByteView given) const {
  return constant_time_equal(mac(message), given);
}

Result<void> PskSet::add(Psk psk) {
  for (const auto& [id, known] : psks_) {
    if (id.number == psk.id().number) return fail(Errc::already_exists, "two PSKs with the number {}", id.number);
  }
  const auto id = psk.id();
  psks_.emplace(id, std::move(psk));
  return {};
}

const Psk* PskSet::find(const PskId& id) const {
  const auto found = psks_.find(id);
  return found == psks_.end() ? nullptr : &found->second;
}

const Psk* PskSet::newest() const {
  return psks_.empty() ? nullptr : &psks_.rbegin()->second;
}

std::vector<PskId> PskSet::ids() const {
  std::vector<PskId> ids;
  for (const auto& [id, psk] : psks_)
    ids.push_back(id);
  return ids;
}

PskBundle PskBundle::duplicate() const {
  PskBundle copy{.number = number, .psk = psk.duplicate(), .previous = std::nullopt};
  if (previous) copy.previous = previous->duplicate();
  return copy;
}

bool PskBundle::equals(const PskBundle& other) const {
  if (number != other.number || previous.has_value() != other.previous.has_value()) return false;
  return psk.equals(other.psk) && (!previous || previous->equals(*other.previous));
}

Result<std::uint32_t> parse_psk_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number == 0 || text.front() == '0') {
    return fail(Errc::invalid, "the number of a PSK is 1 to 4294967295 in decimal digits");
  }
  return number;
}

Result<PskSet> make_psk_set(const PskBundle& bundle, std::string_view cluster_set) {
  if (bundle.number == 0) return fail(Errc::invalid, "PSKs are numbered from 1, this one is 0");
  if (bundle.previous && bundle.number == 1) return fail(Errc::invalid, "PSK 1 has no previous one");
  if (bundle.previous && bundle.previous->equals(bundle.psk)) {
    return fail(Errc::invalid, "PSK {} is the same as the previous one", bundle.number);
  }
  PskSet set;
  FABRIC_TRY(Psk newest, Psk::make(bundle.number, bundle.psk, cluster_set));
  FABRIC_CHECK(set.add(std::move(newest)));
  if (bundle.previous) {
    FABRIC_TRY(Psk previous, Psk::make(bundle.number - 1, *bundle.previous, cluster_set));
    FABRIC_CHECK(set.add(std::move(previous)));
  }
  return set;
}

Digest identity_mac(const Psk& psk, std::string_view cluster_id, const Ed25519Public& identity) {
  return psk.mac(identity_message(cluster_id, identity));
}

bool check_identity_mac(const PskSet& psks, std::string_view cluster_id, const Ed25519Public& identity, ByteView mac) {
  return any_made(psks, identity_message(cluster_id, identity), mac);
}

std::string identity_macs(const PskSet& psks, std::string_view cluster_id, const Ed25519Public& identity) {
  std::string out;
  for (const PskId& id : psks.ids()) {
    if (!out.empty()) out += ',';
    out += to_base64(identity_mac(*psks.find(id), cluster_id, identity));
  }
  return out;
}

bool check_identity_macs(const PskSet& psks, std::string_view cluster_id, const Ed25519Public& identity,
                         std::string_view macs) {
  const auto comma = macs.find(',');
  const auto check = [&](std::string_view text) {
    const auto mac = from_base64(text, sizeof(Digest));
    return mac && check_identity_mac(psks, cluster_id, identity, *mac);
  };
  if (comma == std::string_view::npos) return check(macs);
  return check(macs.substr(0, comma)) || check(macs.substr(comma + 1));
}

Digest join_request_mac(const Psk& psk, std::string_view cluster_id, const X25519Public& reply_key,
                        const Ed25519Public& identity) {
  return psk.mac(join_message(cluster_id, reply_key, identity));
}

bool check_join_request_mac(const PskSet& psks, std::string_view cluster_id, const X25519Public& reply_key,
                            const Ed25519Public& identity, ByteView mac) {
  return any_made(psks, join_message(cluster_id, reply_key, identity), mac);
}

}  // namespace fabric::crypto
