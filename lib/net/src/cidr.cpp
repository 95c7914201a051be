#include <fabric/net/cidr.hpp>

#include <algorithm>
#include <array>
#include <charconv>

namespace fabric::net {

namespace {

IpAddress masked(const IpAddress& address, int length) {
  std::array<std::uint8_t, 16> bytes{};
  std::ranges::copy(address.bytes(), bytes.begin());
  const std::size_t size = address.bytes().size();
  for (std::size_t i = 0; i < size; ++i) {
    const int keep = std::clamp(length - static_cast<int>(i) * 8, 0, 8);
    bytes[i] = static_cast<std::uint8_t>(bytes[i] & (0xff00U >> static_cast<unsigned>(keep)));
  }
  return *IpAddress::from_bytes(std::span(bytes).first(size));
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

}  // namespace

Result<Cidr> Cidr::parse(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return fail(Errc::invalid, "'{}' is not a CIDR: expected address/length", text);
  auto address = IpAddress::parse(text.substr(0, slash));
  if (!address) return fail(Errc::invalid, "'{}' is not a CIDR: {}", text, address.error().message());
  const auto digits = text.substr(slash + 1);
  int length = -1;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), length);
  if (error != std::errc{} || end != digits.end() || length < 0 || length > address_bits(address->family()) ||
      (digits.size() > 1 && digits.front() == '0')) {
    return fail(Errc::invalid, "'{}' is not a CIDR: expected a length of 0..{}", text, address_bits(address->family()));
  }
  Cidr cidr;
  cidr.address_ = masked(*address, length);
  cidr.length_ = length;
  if (cidr.address_ != *address) return fail(Errc::invalid, "'{}' has host bits set; write {}", text, cidr);
  return cidr;
}

Result<Cidr> Cidr::of(const IpAddress& address, int length) {
  if (length < 0 || length > address_bits(address.family())) {
    return fail(Errc::invalid, "{}/{}: expected a length of 0..{}", address, length, address_bits(address.family()));
  }
  Cidr cidr;
  cidr.address_ = masked(address, length);
  cidr.length_ = length;
  return cidr;
}

Cidr Cidr::host(const IpAddress& address) {
  Cidr cidr;
  cidr.address_ = address;
  cidr.length_ = address_bits(address.family());
  return cidr;
}

Cidr Cidr::any(Family family) {
  Cidr cidr;
  cidr.address_ = IpAddress::any(family);
  return cidr;
}

bool Cidr::contains(const IpAddress& address) const {
  return address.family() == family() && masked(address, length_) == address_;
}

bool Cidr::contains(const Cidr& other) const {
  return other.length_ >= length_ && contains(other.address_);
}

std::string Cidr::to_string() const {
  return fmt::format("{}/{}", address_, length_);
}

Result<std::vector<Cidr>> parse_cidr_list(std::string_view comma_separated) {
  std::vector<Cidr> prefixes;
  std::string_view rest = trimmed(comma_separated);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    FABRIC_TRY(auto prefix, Cidr::parse(trimmed(rest.substr(0, comma))));
    prefixes.push_back(prefix);
    rest = comma == std::string_view::npos ? std::string_view{} : trimmed(rest.substr(comma + 1));
    if (comma != std::string_view::npos && rest.empty())
      return fail(Errc::invalid, "'{}' ends with a comma", comma_separated);
  }
  return prefixes;
}

std::vector<Cidr> canonical_set(std::span<const Cidr> prefixes) {
  std::vector<Cidr> sorted(prefixes.begin(), prefixes.end());
  std::ranges::sort(sorted);
  std::vector<Cidr> result;
  for (const Cidr& prefix : sorted) {
    // In address order with shorter lengths first, a containing prefix precedes what it contains.
    if (result.empty() || !result.back().contains(prefix)) result.push_back(prefix);
  }
  return result;
}

Overlap first_overlap(std::span<const Cidr> left, std::span<const Cidr> right) {
  for (const Cidr& a : left) {
    for (const Cidr& b : right) {
      if (a.overlaps(b)) return {&a, &b};
    }
  }
  return {};
}

std::string join(std::span<const Cidr> prefixes, std::string_view separator) {
  return fmt::format("{}", fmt::join(prefixes, separator));
}

}  // namespace fabric::net
