#include <fabric/kernel/fake_kernel.hpp>

#include "driver_contract.hpp"

namespace fabric::kernel::contract {
namespace {

class Fake final : public Kernel {
 public:
  Driver& driver() override { return *driver_; }

  void add_foreign_policy(const netstate::PolicyKey& key) override { state_.foreign.policies[key] = {}; }

  bool has_foreign_policy(const netstate::PolicyKey& key) override { return state_.foreign.policies.contains(key); }

 private:
  FakeKernelState state_;
  std::unique_ptr<Driver> driver_ = make_fake_driver(state_);
};

const Implementation kFake{"FakeKernel", [] { return std::make_unique<Fake>(); }};

INSTANTIATE_TEST_SUITE_P(Fake, PolicyContract, testing::Values(kFake), name_of);
INSTANTIATE_TEST_SUITE_P(Fake, SaContract, testing::Values(kFake), name_of);

}  // namespace
}  // namespace fabric::kernel::contract
