#pragma once

#include <fabric/base/error.hpp>
#include <fabric/base/secret.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fabric::crypto {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

/// The bytes of a text, valid as long as the text.
ByteView view_of(std::string_view text);

/// RFC 4648 base64 with padding.
std::string to_base64(ByteView bytes);
/// Strict: alphabet, padding and unused bits must be canonical. Errc::invalid otherwise, or when the result would be
/// longer than `limit` bytes.
Result<Bytes> from_base64(std::string_view text, std::size_t limit = 1 << 20);

}  // namespace fabric::crypto
