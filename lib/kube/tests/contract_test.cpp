#include <fabric/async/testing.hpp>
#include <fabric/kube/fake/contract.hpp>
#include <fabric/kube/fake/fake_api_server.hpp>

#include <gtest/gtest.h>

namespace fabric::kube::fake {
namespace {

class FakeDriver {
 public:
  Client& client() { return *client_; }

  std::string ns() { return "contract"; }

  void forget_the_past() { server_.compact(); }

  bool knows_kinds() const { return false; }

  template <class T>
  Result<T> run(async::Task<Result<T>> task) {
    return loop_.run(std::move(task));
  }

 protected:
  async::TestLoop loop_;
  telemetry::Registry metrics_;
  FakeApiServer server_{loop_.executor(), loop_.clock()};
  std::unique_ptr<Client> client_ = server_.client(metrics_);
};

/// Every watch arrives byte by byte.
class DrippingDriver : public FakeDriver {
 public:
  DrippingDriver() { server_.set_chunk_size(1); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Fake, ApiContract, FakeDriver);
INSTANTIATE_TYPED_TEST_SUITE_P(DrippingFake, ApiContract, DrippingDriver);

}  // namespace
}  // namespace fabric::kube::fake
