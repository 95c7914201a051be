#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine.hpp"

/// Rules as entries of the kernel's legacy tables (struct ipt_entry and ip6t_entry), both ways.
namespace fabric::kernel {

/// Kernel numbers of ipsets, which entries hold instead of names.
class SetNumbers {
 public:
  virtual ~SetNumbers() = default;
  virtual Result<std::uint16_t> number(const std::string& name) const = 0;
  virtual Result<std::string> name(std::uint16_t number) const = 0;
};

/// Asks the kernel by getsockopt(SO_IP_SET).
class KernelSetNumbers final : public SetNumbers {
 public:
  static Result<KernelSetNumbers> open();
  KernelSetNumbers(KernelSetNumbers&& other) noexcept;
  KernelSetNumbers(const KernelSetNumbers&) = delete;
  KernelSetNumbers& operator=(const KernelSetNumbers&) = delete;
  KernelSetNumbers& operator=(KernelSetNumbers&&) = delete;
  ~KernelSetNumbers() override;
  Result<std::uint16_t> number(const std::string& name) const override;
  Result<std::string> name(std::uint16_t number) const override;

 private:
  KernelSetNumbers(int fd, std::uint32_t version) : fd_(fd), version_(version) {}

  int fd_;
  std::uint32_t version_;
};

/// The bytes of an entry, aligned as the kernel wants them.
using EntryBytes = std::vector<std::max_align_t>;

Result<EntryBytes> encode_entry(const ChainKey& key, const FilterRule& rule, const SetNumbers& numbers);
/// An entry without conditions that jumps to a chain.
EntryBytes encode_jump(Family family, std::string_view chain);
/// `target` is libiptc's name of the target, since chains are offsets in the entry itself.
FilterRule decode_entry(const ChainKey& key, const void* entry, std::string_view target, const SetNumbers& numbers);

}  // namespace fabric::kernel
