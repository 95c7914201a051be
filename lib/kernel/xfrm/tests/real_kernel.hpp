#pragma once

#include <fabric/kernel/xfrm.hpp>

#include <fmt/format.h>

#include <memory>
#include <string>

#include "driver_contract.hpp"
#include "network.hpp"

namespace fabric::kernel::contract {

/// The kernel below this process, in a fresh network namespace.
class RealKernel final : public Kernel {
 public:
  RealKernel() : home_(test::Namespace::enter_new()) {
    auto driver = XfrmDriver::open();
    FABRIC_ASSERT(driver.has_value());
    driver_ = std::move(*driver);
  }

  Driver& driver() override { return *driver_; }

  void add_foreign_policy(const netstate::PolicyKey& key) override {
    FABRIC_ASSERT(key.direction == netstate::Direction::out);
    test::run(
        fmt::format("ip xfrm policy add dir out src {} dst {} priority 1000 tmpl src 192.0.2.1 dst 192.0.2.9 "
                    "proto esp reqid 1 mode tunnel",
                    key.src, key.dst));
  }

  bool has_foreign_policy(const netstate::PolicyKey& key) override {
    const auto text = test::output_of(fmt::format("ip xfrm policy get dir out src {} dst {}", key.src, key.dst));
    return text.find("priority 1000") != std::string::npos && text.find("reqid 1 ") != std::string::npos;
  }

 private:
  test::Namespace home_;
  std::unique_ptr<XfrmDriver> driver_;
};

inline Implementation real_kernel() {
  return {"Kernel", [] { return std::make_unique<RealKernel>(); }};
}

}  // namespace fabric::kernel::contract
