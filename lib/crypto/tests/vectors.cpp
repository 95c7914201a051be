#include "vectors.hpp"

#include <fabric/base/assert.hpp>

#include <fstream>

namespace fabric::crypto::testing {

Bytes from_hex(std::string_view text) {
  Bytes out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    out.push_back(static_cast<std::uint8_t>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return out;
}

const std::map<std::string, Bytes>& vectors() {
  static const auto all = [] {
    std::map<std::string, Bytes> out;
    std::ifstream in(FABRIC_VECTORS);
    std::string name;
    std::string hex;
    while (in >> name >> hex)
      out.emplace(name, from_hex(hex));
    return out;
  }();
  return all;
}

const Bytes& vector_of(const std::string& name) {
  const auto found = vectors().find(name);
  FABRIC_ASSERT(found != vectors().end());
  return found->second;
}

Secret secret_of(const std::string& name) {
  return Secret(vector_of(name));
}

}  // namespace fabric::crypto::testing
