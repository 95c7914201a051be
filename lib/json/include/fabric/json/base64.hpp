#pragma once

#include <fabric/base/error.hpp>
#include <fabric/base/secret.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fabric::json {

enum class Base64Alphabet : std::uint8_t { standard, url };

/// RFC 4648 sections 4 and 5, with padding unless told otherwise.
std::string encode_base64(std::span<const std::uint8_t> bytes, Base64Alphabet alphabet = Base64Alphabet::standard,
                          bool padding = true);
std::string encode_base64(std::string_view text, Base64Alphabet alphabet = Base64Alphabet::standard,
                          bool padding = true);

/// Accepts either alphabet (not both in one text), with or without padding. Anything else is Errc::invalid: white
/// space, wrong padding, an impossible length, set bits after the last byte. The message never quotes the text.
Result<std::vector<std::uint8_t>> decode_base64(std::string_view text);

/// As decode_base64, for text whose content is secret.
Result<Secret> decode_base64_secret(std::string_view text);

}  // namespace fabric::json
