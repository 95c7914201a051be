#pragma once

#include <fabric/controller/list_watch.hpp>
#include <fabric/controller/reflector.hpp>
#include <fabric/controller/runtime.hpp>
#include <fabric/controller/store.hpp>

#include <memory>
#include <string>
#include <utility>

namespace fabric::controller {

/// A Store and the reflector that fills it. Spawn `run()` in a TaskGroup; read `store()`.
template <class T>
class Informer {
 public:
  /// `name` is for logs and metrics. T may be json::Value, for kinds without a type of ours.
  Informer(std::string name, std::unique_ptr<ListWatch> source, Runtime runtime)
      : store_(runtime.executor), reflector_(std::move(name), std::move(source), store_, std::move(runtime)) {}

  /// T's own collection at an API server.
  Informer(kube::Client& client, kube::Selection selection, Runtime runtime)
      : Informer(kube::resource_of<T>().plural,
                 std::make_unique<KubeListWatch>(client, kube::resource_of<T>(), std::move(selection)),
                 std::move(runtime)) {}

  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;
  ~Informer() = default;

  Store<T>& store() { return store_; }

  const Store<T>& store() const { return store_; }

  /// Until cancelled.
  async::Task<Result<void>> run() { return reflector_.run(); }

 private:
  Store<T> store_;
  Reflector reflector_;
};

}  // namespace fabric::controller
