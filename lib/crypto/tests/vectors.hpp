#pragma once

#include <fabric/crypto/bytes.hpp>

#include <map>
#include <string>

namespace fabric::crypto::testing {

Bytes from_hex(std::string_view text);

/// test/vectors/crypto.txt, made by another implementation (make_vectors.py).
const std::map<std::string, Bytes>& vectors();

/// One of them; its absence fails the program.
const Bytes& vector_of(const std::string& name);
Secret secret_of(const std::string& name);

template <std::size_t N>
std::array<std::uint8_t, N> array_of(const std::string& name) {
  std::array<std::uint8_t, N> out{};
  const auto& bytes = vector_of(name);
  if (bytes.size() == N) std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

}  // namespace fabric::crypto::testing
