#include <fabric/crypto/bytes.hpp>

namespace fabric::crypto {

namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// 0..63, or -1.
int sextet(char c) {
  const auto at = kAlphabet.find(c);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

std::unexpected<Error> not_base64() {
  return fail(Errc::invalid, "not canonical base64");
}

}  // namespace

ByteView view_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string to_base64(ByteView bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto left = bytes.size() - i;
    const std::uint32_t group = (std::uint32_t{bytes[i]} << 16) | (left > 1 ? std::uint32_t{bytes[i + 1]} << 8 : 0U) |
                                (left > 2 ? std::uint32_t{bytes[i + 2]} : 0U);
    out += kAlphabet[group >> 18];
    out += kAlphabet[(group >> 12) & 63];
    out += left > 1 ? kAlphabet[(group >> 6) & 63] : '=';
    out += left > 2 ? kAlphabet[group & 63] : '=';
  }
  return out;
}

Result<Bytes> from_base64(std::string_view text, std::size_t limit) {
  if (text.size() % 4 != 0) return not_base64();
  if (text.size() / 4 * 3 > limit + 2) return fail(Errc::invalid, "base64 of more than {} bytes", limit);
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=')
    ++padding;
  Bytes out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_padding = i >= text.size() - padding;
    const int value = is_padding ? 0 : sextet(text[i]);
    if (value < 0) return not_base64();
    group = (group << 6) | static_cast<std::uint32_t>(value);
    if (i % 4 != 3) continue;
    out.push_back(static_cast<std::uint8_t>(group >> 16));
    out.push_back(static_cast<std::uint8_t>(group >> 8));
    out.push_back(static_cast<std::uint8_t>(group));
    group = 0;
  }
  for (std::size_t i = 0; i < padding; ++i) {
    if (out.back() != 0) return not_base64();
    out.pop_back();
  }
  if (out.size() > limit) return fail(Errc::invalid, "base64 of more than {} bytes", limit);
  return out;
}

}  // namespace fabric::crypto
