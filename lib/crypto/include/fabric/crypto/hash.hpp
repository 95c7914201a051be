#pragma once

#include <fabric/crypto/bytes.hpp>

namespace fabric::crypto {

using Digest = std::array<std::uint8_t, 32>;

Digest sha256(ByteView message);
Digest hmac_sha256(ByteView key, ByteView message);

/// RFC 5869 with SHA-256. The extract step gives 32 bytes; the expand step gives 1..255*32 bytes.
Secret hkdf_extract(ByteView salt, ByteView input_key);
Secret hkdf_expand(const Secret& prk, ByteView label, std::size_t size);

}  // namespace fabric::crypto
