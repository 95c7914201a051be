#pragma once

#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/kube/client.hpp>
#include <fabric/kube/request.hpp>
#include <fabric/kube/resource.hpp>

#include <memory>

namespace fabric::controller {

/// The port through which one collection is listed and watched. Errors as kube::Client's.
class ListWatch {
 public:
  virtual ~ListWatch() = default;
  virtual async::Task<Result<kube::Page>> list_page(kube::PageOptions page) = 0;
  virtual async::Task<Result<std::unique_ptr<kube::WatchStream>>> watch(kube::WatchOptions options) = 0;
};

/// One collection of a real API server. The client outlives it.
class KubeListWatch final : public ListWatch {
 public:
  KubeListWatch(kube::Client& client, kube::ResourceId resource, kube::Selection selection)
      : client_(client), resource_(std::move(resource)), selection_(std::move(selection)) {}

  async::Task<Result<kube::Page>> list_page(kube::PageOptions page) override {
    return client_.list_page(resource_, selection_, std::move(page));
  }

  async::Task<Result<std::unique_ptr<kube::WatchStream>>> watch(kube::WatchOptions options) override {
    return client_.watch(resource_, selection_, std::move(options));
  }

 private:
  kube::Client& client_;
  kube::ResourceId resource_;
  kube::Selection selection_;
};

}  // namespace fabric::controller
