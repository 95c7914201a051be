#include <fabric/base/secret.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace fabric {

Secret Secret::from_text(std::string_view text) {
  Secret secret(text.size());
  std::ranges::transform(text, secret.bytes_.begin(), [](char c) { return static_cast<std::uint8_t>(c); });
  return secret;
}

Secret::Secret(Secret&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    cleanse();
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

Secret::~Secret() {
  cleanse();
}

std::string_view Secret::reveal_text() const {
  return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
}

bool Secret::equals(const Secret& other) const {
  return constant_time_equal(bytes_, other.bytes_);
}

void Secret::cleanse() noexcept {
  cleanse_memory(bytes_);
}

bool constant_time_equal(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

void cleanse_memory(std::span<std::uint8_t> bytes) noexcept {
  if (bytes.empty()) return;
  ::explicit_bzero(bytes.data(), bytes.size());
}

}  // namespace fabric
