#include <fabric/ctl/static_key.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace fabric::ctl {

namespace {

constexpr std::size_t kAes128 = 20;
constexpr std::size_t kAes192 = 28;
constexpr std::size_t kAes256 = 36;
constexpr std::string_view kSpace = " \t\r\n";

std::string_view trim(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

}  // namespace

Result<Secret> parse_static_key(std::string_view text) {
  text = trim(text);
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  Secret key(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const std::string_view digits = text.substr(i, 2);
    std::uint8_t byte = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (error != std::errc() || digits.size() != 2 || end != digits.data() + 2) {
      return fail(Errc::invalid, "expected an even number of hex digits and nothing else");
    }
    key.writable()[i / 2] = byte;
  }
  if (key.size() == kAes192) {
    return fail(Errc::invalid, "AES-192 (24 bytes and 4 of salt) is not supported: use 36 bytes, or 20");
  }
  if (key.size() != kAes128 && key.size() != kAes256) {
    return fail(Errc::invalid, "{} bytes: expected 36 (AES-256 and 4 of salt), or 20 (AES-128 and 4 of salt)",
                key.size());
  }
  return key;
}

}  // namespace fabric::ctl
