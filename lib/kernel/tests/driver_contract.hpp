#pragma once

#include <fabric/kernel/driver.hpp>
#include <fabric/netstate/state.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

namespace fabric::kernel::contract {

/// An empty kernel to test a driver on.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Driver& driver() = 0;
  /// Puts a policy of another program there, with a reqid that is not ours.
  virtual void add_foreign_policy(const netstate::PolicyKey& key) = 0;
  virtual bool has_foreign_policy(const netstate::PolicyKey& key) = 0;
};

struct Implementation {
  std::string name;
  std::function<std::unique_ptr<Kernel>()> make;
};

/// The same tests for FakeKernel and for the real kernel. A test program instantiates what its kernel can do:
/// INSTANTIATE_TEST_SUITE_P(Fake, PolicyContract, testing::Values(...), name_of).
class PolicyContract : public testing::TestWithParam<Implementation> {
 protected:
  void SetUp() override { kernel = GetParam().make(); }

  std::unique_ptr<Kernel> kernel;
};

/// Needs a kernel with ESP.
class SaContract : public PolicyContract {};

inline std::string name_of(const testing::TestParamInfo<Implementation>& info) {
  return info.param.name;
}

}  // namespace fabric::kernel::contract
