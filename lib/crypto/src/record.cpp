#include <fabric/crypto/encoding.hpp>
#include <fabric/crypto/record.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace fabric::crypto {

namespace {

constexpr std::string_view kKeyLabel = "fabric/v1 key record";
constexpr std::string_view kStateLabel = "fabric/v1 state record";
constexpr std::string_view kAnyVersion = "fabric/v";

constexpr std::size_t kMaxClusterSet = 63;
constexpr std::size_t kMaxCluster = 63;   // RFC 1123 label
constexpr std::size_t kMaxGateway = 253;  // RFC 1123 subdomain, as node names are
constexpr std::size_t kMaxSuites = 8;
constexpr std::size_t kMaxPsks = 4;
constexpr std::size_t kMaxAddresses = 16;
constexpr std::size_t kMaxPrefixes = 1024;
constexpr std::size_t kMaxSeen = 4096;
constexpr std::uint64_t kMaxTime = 253'402'300'799'999;  // The year 9999, so that adding a tolerance cannot overflow.
constexpr std::size_t kMacSize = 32;
constexpr std::size_t kSignatureSize = 64;

void put(Writer& out, const PskId& id) {
  out.number(id.number);
  out.raw(id.fingerprint);
}

void put(Writer& out, const net::IpAddress& address) {
  out.number(static_cast<std::uint8_t>(address.bytes().size()));
  out.raw(address.bytes());
}

void put(Writer& out, const net::Cidr& cidr) {
  put(out, cidr.address());
  out.number(static_cast<std::uint8_t>(cidr.length()));
}

void put(Writer& out, const GatewayId& id) {
  out.text(id.cluster);
  out.text(id.gateway);
}

void put(Writer& out, const Seen& seen) {
  put(out, seen.peer);
  out.raw(seen.instance.value());
  out.number(seen.generation.value());
}

void put(Writer& out, std::uint8_t number) {
  out.number(number);
}

template <class T>
void put_list(Writer& out, const std::vector<T>& list) {
  out.number(static_cast<std::uint16_t>(list.size()));
  for (const auto& item : list)
    put(out, item);
}

void get(Reader& in, std::uint8_t& number) {
  number = in.number<std::uint8_t>();
}

void get(Reader& in, PskId& id) {
  id.number = in.number<std::uint32_t>();
  id.fingerprint = in.array<8>();
}

void get(Reader& in, net::IpAddress& address) {
  const auto parsed = net::IpAddress::from_bytes(in.raw(in.number<std::uint8_t>()));
  if (parsed) {
    address = *parsed;
  } else {
    in.refuse();
  }
}

void get(Reader& in, net::Cidr& cidr) {
  net::IpAddress address;
  get(in, address);
  const auto made = net::Cidr::of(address, in.number<std::uint8_t>());
  if (made && made->address() == address) {
    cidr = *made;
  } else {
    in.refuse();
  }
}

void get(Reader& in, GatewayId& id) {
  id.cluster = in.text(kMaxCluster);
  id.gateway = in.text(kMaxGateway);
  if (id.cluster.empty() || id.gateway.empty()) in.refuse();
}

void get(Reader& in, Seen& seen) {
  get(in, seen.peer);
  seen.instance = InstanceId(in.array<16>());
  seen.generation = Generation(in.number<std::uint64_t>());
}

template <class T>
void get_list(Reader& in, std::vector<T>& list, std::size_t limit) {
  const auto count = in.number<std::uint16_t>();
  if (count > limit) in.refuse();
  for (std::size_t i = 0; in.ok() && i < count; ++i)
    get(in, list.emplace_back());
}

bool get_flag(Reader& in) {
  const auto value = in.number<std::uint8_t>();
  if (value > 1) in.refuse();
  return value == 1;
}

TimePoint get_time(Reader& in) {
  const auto value = in.number<std::uint64_t>();
  if (value > kMaxTime) in.refuse();
  return TimePoint(Duration(in.ok() ? static_cast<std::int64_t>(value) : 0));
}

bool strictly_ascending(const std::vector<PskId>& ids) {
  return std::ranges::adjacent_find(ids, [](const PskId& a, const PskId& b) { return a.number >= b.number; }) ==
         ids.end();
}

void put_body(Writer& out, const KeyRecord& record) {
  out.text(kKeyLabel);
  out.text(record.cluster_set);
  put(out, record.owner);
  out.raw(record.instance.value());
  out.number(record.generation.value());
  out.raw(record.public_key.value());
  out.raw(record.nonce);
  put_list(out, record.suites);
  put_list(out, record.psks);
  out.number(static_cast<std::uint64_t>(record.not_after.time_since_epoch().count()));
}

void put_body(Writer& out, const StateRecord& record) {
  out.text(kStateLabel);
  out.text(record.cluster_set);
  put(out, record.owner);
  out.raw(record.instance.value());
  out.number(record.counter);
  put_list(out, record.private_addresses);
  put_list(out, record.public_addresses);
  out.number(static_cast<std::uint8_t>(record.nat));
  out.number(static_cast<std::uint8_t>(record.leaving));
  out.number(record.natt_port);
  put_list(out, record.prefixes);
  put_list(out, record.health_check);
  put_list(out, record.seen);
  put_list(out, record.psks);
}

void get_body(Reader& in, KeyRecord& record) {
  record.cluster_set = in.text(kMaxClusterSet);
  get(in, record.owner);
  record.instance = InstanceId(in.array<16>());
  record.generation = Generation(in.number<std::uint64_t>());
  record.public_key = X25519Public(in.array<32>());
  record.nonce = in.array<32>();
  get_list(in, record.suites, kMaxSuites);
  get_list(in, record.psks, kMaxPsks);
  record.not_after = get_time(in);
  if (record.suites.empty() || record.psks.empty() || !strictly_ascending(record.psks)) in.refuse();
}

void get_body(Reader& in, StateRecord& record) {
  record.cluster_set = in.text(kMaxClusterSet);
  get(in, record.owner);
  record.instance = InstanceId(in.array<16>());
  record.counter = in.number<std::uint64_t>();
  get_list(in, record.private_addresses, kMaxAddresses);
  get_list(in, record.public_addresses, kMaxAddresses);
  record.nat = get_flag(in);
  record.leaving = get_flag(in);
  record.natt_port = in.number<std::uint16_t>();
  get_list(in, record.prefixes, kMaxPrefixes);
  get_list(in, record.health_check, kMaxAddresses);
  get_list(in, record.seen, kMaxSeen);
  get_list(in, record.psks, kMaxPsks);
  if (record.psks.empty() || !strictly_ascending(record.psks)) in.refuse();
}

template <class Record>
struct Limits;

template <>
struct Limits<KeyRecord> {
  static constexpr auto label = kKeyLabel;
  static constexpr auto size = kMaxKeyRecord;
};

template <>
struct Limits<StateRecord> {
  static constexpr auto label = kStateLabel;
  static constexpr auto size = kMaxStateRecord;
};

/// "fabric/v2 key record" where "fabric/v1 key record" was wanted.
bool is_other_version(std::string_view label, std::string_view wanted) {
  return label.starts_with(kAnyVersion) && label.ends_with(wanted.substr(wanted.find(' ')));
}

/// The parts of a record: body ‖ a MAC over the body per PSK ‖ a signature over both.
template <class Record>
struct Parts {
  Record record;
  ByteView body;
  ByteView macs;
  ByteView signed_part;
  Signature signature{};
};

template <class Record>
Checked<Parts<Record>> split(ByteView bytes) {
  if (bytes.size() > Limits<Record>::size) return std::unexpected(Reject::oversized);
  Parts<Record> parts;
  Reader in(bytes);
  const auto label = in.text(kMaxClusterSet);
  if (!in.ok()) return std::unexpected(Reject::malformed);
  if (label != Limits<Record>::label) {
    return std::unexpected(is_other_version(label, Limits<Record>::label) ? Reject::unsupported_version
                                                                          : Reject::malformed);
  }
  get_body(in, parts.record);
  if (!in.ok() || in.left() != parts.record.psks.size() * kMacSize + kSignatureSize) {
    return std::unexpected(Reject::malformed);
  }
  parts.body = bytes.first(bytes.size() - in.left());
  parts.macs = in.raw(parts.record.psks.size() * kMacSize);
  parts.signed_part = bytes.first(bytes.size() - kSignatureSize);
  parts.signature = in.array<kSignatureSize>();
  return parts;
}

std::optional<Reject> check_macs(ByteView body, ByteView macs, const std::vector<PskId>& ids, const PskSet& psks) {
  bool known = false;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto* psk = psks.find(ids[i]);
    if (psk == nullptr) continue;
    known = true;
    if (!psk->check(body, macs.subspan(i * kMacSize, kMacSize))) return Reject::bad_mac;
  }
  return known ? std::nullopt : std::optional(Reject::unknown_psk);
}

template <class Record>
Checked<Announced<Record>> verify(ByteView bytes, const PskSet& psks, const Expected& expected) {
  auto parts = split<Record>(bytes);
  if (!parts) return std::unexpected(parts.error());
  const auto& record = parts->record;
  if (record.cluster_set != expected.cluster_set) return std::unexpected(Reject::foreign_cluster_set);
  if (expected.owner != nullptr && record.owner != *expected.owner) return std::unexpected(Reject::foreign_gateway);
  if (const auto reject = check_macs(parts->body, parts->macs, record.psks, psks)) return std::unexpected(*reject);
  if (expected.identity == nullptr) return std::unexpected(Reject::unknown_identity);
  if (!ed25519_verify(*expected.identity, parts->signed_part, parts->signature)) {
    return std::unexpected(Reject::bad_signature);
  }
  if constexpr (requires { record.not_after; }) {
    if (record.not_after + expected.clock_tolerance < expected.now) return std::unexpected(Reject::expired);
  }
  return Announced<Record>{std::move(parts->record), Bytes(bytes.begin(), bytes.end())};
}

template <class Record>
Result<Announced<Record>> make(Record record, const PskSet& psks, const Ed25519KeyPair& identity) {
  record.psks = psks.ids();
  Writer out;
  put_body(out, record);
  const auto body_size = out.bytes().size();
  for (const auto& id : record.psks) {
    const auto mac = psks.find(id)->mac(ByteView(out.bytes()).first(body_size));
    out.raw(mac);
  }
  out.raw(ed25519_sign(identity, out.bytes()));
  auto bytes = std::move(out).take();
  // Whatever our own decoder would refuse is refused here, where somebody can still say why.
  const auto again = split<Record>(bytes);
  if (!again || again->record != record) {
    return fail(Errc::invalid, "record of {}/{}: a name, list or value is outside the limits of the encoding",
                record.owner.cluster, record.owner.gateway);
  }
  return Announced<Record>{std::move(record), std::move(bytes)};
}

template <class Record>
Checked<Record> decode(ByteView bytes) {
  auto parts = split<Record>(bytes);
  if (!parts) return std::unexpected(parts.error());
  return std::move(parts->record);
}

Checked<Bytes> read_text(std::string_view base64, std::size_t most) {
  if (base64.size() > (most + 2) / 3 * 4) return std::unexpected(Reject::oversized);
  auto bytes = from_base64(base64, most);
  if (!bytes || bytes->empty()) return std::unexpected(Reject::malformed);
  return *std::move(bytes);
}

}  // namespace

Result<InstanceId> draw_instance(Entropy& entropy) {
  std::array<std::uint8_t, 16> bytes{};
  FABRIC_CHECK(entropy.fill(bytes));
  return InstanceId(bytes);
}

std::string to_hex(const InstanceId& instance) {
  return fmt::format("{:02x}", fmt::join(instance.value(), ""));
}

std::string_view to_string(Reject reject) {
  switch (reject) {
    case Reject::malformed:
      return "malformed";
    case Reject::oversized:
      return "oversized";
    case Reject::unsupported_version:
      return "unsupported_version";
    case Reject::foreign_cluster_set:
      return "foreign_cluster_set";
    case Reject::foreign_gateway:
      return "foreign_gateway";
    case Reject::unknown_identity:
      return "unknown_identity";
    case Reject::unknown_psk:
      return "unknown_psk";
    case Reject::bad_mac:
      return "bad_mac";
    case Reject::bad_signature:
      return "bad_signature";
    case Reject::stale_generation:
      return "stale_generation";
    case Reject::expired:
      return "expired";
    case Reject::mixed_instances:
      return "mixed_instances";
  }
  return "unknown";
}

Result<AnnouncedKey> sign(KeyRecord record, const PskSet& psks, const Ed25519KeyPair& identity) {
  return make(std::move(record), psks, identity);
}

Result<AnnouncedState> sign(StateRecord record, const PskSet& psks, const Ed25519KeyPair& identity) {
  return make(std::move(record), psks, identity);
}

Checked<AnnouncedKey> verify_key_record(ByteView bytes, const PskSet& psks, const Expected& expected) {
  return verify<KeyRecord>(bytes, psks, expected);
}

Checked<AnnouncedState> verify_state_record(ByteView bytes, const PskSet& psks, const Expected& expected) {
  return verify<StateRecord>(bytes, psks, expected);
}

Checked<KeyRecord> decode_key_record(ByteView bytes) {
  return decode<KeyRecord>(bytes);
}

Checked<StateRecord> decode_state_record(ByteView bytes) {
  return decode<StateRecord>(bytes);
}

Checked<std::vector<Bytes>> read_key_list(std::string_view text) {
  std::vector<Bytes> records;
  for (bool more = true; more;) {
    const auto comma = text.find(',');
    more = comma != std::string_view::npos;
    if (records.size() == kMaxKeyRecords) return std::unexpected(Reject::oversized);
    auto bytes = read_text(text.substr(0, comma), kMaxKeyRecord);
    if (!bytes) return std::unexpected(bytes.error());
    records.push_back(*std::move(bytes));
    if (more) text.remove_prefix(comma + 1);
  }
  return records;
}

Checked<Bytes> read_state_text(std::string_view text) {
  return read_text(text, kMaxStateRecord);
}

std::string write_key_list(std::span<const AnnouncedKey> keys) {
  std::string text;
  for (const auto& key : keys) {
    if (!text.empty()) text += ',';
    text += to_base64(key.bytes);
  }
  return text;
}

}  // namespace fabric::crypto
