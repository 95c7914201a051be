#include <fabric/net/mac.hpp>

#include <charconv>

namespace fabric::net {

Result<Mac> Mac::parse(std::string_view text) {
  Mac mac;
  constexpr std::size_t kTextSize = 17;  // six pairs of digits and five colons
  if (text.size() != kTextSize) return fail(Errc::invalid, "'{}' is not an Ethernet address", text);
  for (std::size_t i = 0; i < mac.bytes.size(); ++i) {
    const auto pair = text.substr(i * 3, 2);
    const auto [end, error] = std::from_chars(pair.begin(), pair.end(), mac.bytes.at(i), 16);
    if (error != std::errc{} || end != pair.end() || (i < 5 && text[i * 3 + 2] != ':')) {
      return fail(Errc::invalid, "'{}' is not an Ethernet address", text);
    }
  }
  return mac;
}

std::string Mac::to_string() const {
  return fmt::format("{:02x}", fmt::join(bytes, ":"));
}

}  // namespace fabric::net
