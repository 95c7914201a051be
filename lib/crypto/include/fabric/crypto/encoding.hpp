#pragma once

#include <fabric/crypto/bytes.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

/// The canonical encoding: fixed-size big-endian numbers, texts and lists behind their length.
namespace fabric::crypto {

class Writer {
 public:
  template <std::unsigned_integral T>
  void number(T value) {
    for (std::size_t i = sizeof(T); i-- > 0;)
      out_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }

  void raw(ByteView bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }

  void raw(std::string_view text) { raw(view_of(text)); }

  /// A text behind its length of 16 bits.
  void text(std::string_view value) {
    number(static_cast<std::uint16_t>(value.size()));
    raw(value);
  }

  const Bytes& bytes() const { return out_; }

  Bytes take() && { return std::move(out_); }

 private:
  Bytes out_;
};

/// Reads what Writer wrote. After a first failure everything reads as zero and `ok()` stays false, so that a decoder
/// may check once; counts read after a failure are zero, so loops end.
class Reader {
 public:
  explicit Reader(ByteView bytes) : rest_(bytes) {}

  template <std::unsigned_integral T>
  T number() {
    T value = 0;
    for (const auto byte : raw(sizeof(T)))
      value = static_cast<T>(static_cast<T>(value << (sizeof(T) > 1 ? 8 : 0)) | byte);
    return value;
  }

  ByteView raw(std::size_t size) {
    if (!ok_ || rest_.size() < size) {
      refuse();
      return {};
    }
    const auto head = rest_.first(size);
    rest_ = rest_.subspan(size);
    return head;
  }

  template <std::size_t N>
  std::array<std::uint8_t, N> array() {
    std::array<std::uint8_t, N> out{};
    std::ranges::copy(raw(N), out.begin());
    return out;
  }

  std::string text(std::size_t limit) {
    const auto size = number<std::uint16_t>();
    if (size > limit) refuse();
    const auto bytes = raw(ok_ ? size : 0);
    return {bytes.begin(), bytes.end()};
  }

  void refuse() {
    ok_ = false;
    rest_ = {};
  }

  bool ok() const { return ok_; }

  bool at_end() const { return ok_ && rest_.empty(); }

  std::size_t left() const { return rest_.size(); }

 private:
  ByteView rest_;
  bool ok_ = true;
};

}  // namespace fabric::crypto
