#include <fabric/json/base64.hpp>

#include <array>
#include <optional>

namespace fabric::json {

namespace {

constexpr std::string_view kStandard = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrl = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

struct Digit {
  std::uint32_t bits;
  std::optional<Base64Alphabet> only_in;
};

std::optional<Digit> digit(char c) {
  const auto offset = [c](char first) { return static_cast<std::uint32_t>(c - first); };
  if (c >= 'A' && c <= 'Z') return Digit{offset('A'), {}};
  if (c >= 'a' && c <= 'z') return Digit{26 + offset('a'), {}};
  if (c >= '0' && c <= '9') return Digit{52 + offset('0'), {}};
  if (c == '+' || c == '/') return Digit{c == '+' ? 62U : 63U, Base64Alphabet::standard};
  if (c == '-' || c == '_') return Digit{c == '-' ? 62U : 63U, Base64Alphabet::url};
  return std::nullopt;
}

// Without its padding; refuses padding that does not fill the last group of four.
Result<std::string_view> without_padding(std::string_view text) {
  const auto content = text.find_last_not_of('=') + 1;
  const auto padding = text.size() - content;
  if (padding > 0 && (padding > 2 || text.size() % 4 != 0)) return fail(Errc::invalid, "base64: wrong padding");
  if (content % 4 == 1) return fail(Errc::invalid, "base64: {} characters cannot be the end of a text", content);
  return text.substr(0, content);
}

// Writes into `out`, which has room for every whole byte of the text.
Result<> decode_into(std::string_view text, std::span<std::uint8_t> out) {
  std::uint32_t pending = 0;
  unsigned bits = 0;
  std::size_t written = 0;
  std::optional<Base64Alphabet> alphabet;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto d = digit(text[i]);
    if (!d) return fail(Errc::invalid, "base64: character {} is of neither alphabet", i);
    if (d->only_in && alphabet && *alphabet != *d->only_in) {
      return fail(Errc::invalid, "base64: character {} mixes the two alphabets", i);
    }
    if (d->only_in) alphabet = d->only_in;
    pending = (pending << 6U) | d->bits;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out[written++] = static_cast<std::uint8_t>(pending >> bits);
    pending &= (1U << bits) - 1;
  }
  if (pending != 0) return fail(Errc::invalid, "base64: bits are set after the last byte");
  return {};
}

}  // namespace

std::string encode_base64(std::span<const std::uint8_t> bytes, Base64Alphabet alphabet, bool padding) {
  const std::string_view digits = alphabet == Base64Alphabet::standard ? kStandard : kUrl;
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = (group << 8U) | (j < count ? bytes[i + j] : 0U);
    for (std::size_t j = 0; j <= count; ++j)
      out += digits[(group >> (18U - 6U * j)) & 63U];
    if (padding) out.append(3 - count, '=');
  }
  return out;
}

std::string encode_base64(std::string_view text, Base64Alphabet alphabet, bool padding) {
  return encode_base64(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()), alphabet, padding);
}

Result<std::vector<std::uint8_t>> decode_base64(std::string_view text) {
  FABRIC_TRY(const auto content, without_padding(text));
  std::vector<std::uint8_t> out(content.size() * 6 / 8);
  FABRIC_CHECK(decode_into(content, out));
  return out;
}

Result<Secret> decode_base64_secret(std::string_view text) {
  FABRIC_TRY(const auto content, without_padding(text));
  Secret out(content.size() * 6 / 8);
  FABRIC_CHECK(decode_into(content, out.writable()));
  return out;
}

}  // namespace fabric::json
