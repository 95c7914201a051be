#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace fabric {

/// Owns secret bytes (keys, tokens, PSKs). Cannot be copied or formatted, compares in constant time, and is cleansed
/// when destroyed or moved from. Whoever needs the bytes asks for `reveal()`, which is easy to find in a review.
class Secret {
 public:
  Secret() = default;

  explicit Secret(std::size_t size) : bytes_(size) {}

  explicit Secret(std::span<const std::uint8_t> bytes) : bytes_(bytes.begin(), bytes.end()) {}

  static Secret from_text(std::string_view text);

  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  ~Secret();

  /// An explicit copy, for the rare owner of a second one.
  Secret duplicate() const { return Secret(std::span<const std::uint8_t>(bytes_)); }

  bool empty() const { return bytes_.empty(); }

  std::size_t size() const { return bytes_.size(); }

  std::span<const std::uint8_t> reveal() const { return bytes_; }

  std::string_view reveal_text() const;

  std::span<std::uint8_t> writable() { return bytes_; }

  /// Constant time for equal sizes.
  bool equals(const Secret& other) const;

 private:
  void cleanse() noexcept;
  std::vector<std::uint8_t> bytes_;
};

/// Constant-time comparison of two byte strings of equal size; false when the sizes differ.
bool constant_time_equal(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b);

/// Overwrites memory in a way that the compiler does not remove.
void cleanse_memory(std::span<std::uint8_t> bytes) noexcept;

}  // namespace fabric
