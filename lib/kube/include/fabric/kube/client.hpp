#pragma once

#include <fabric/api/meta.hpp>
#include <fabric/async/clock.hpp>
#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/http/transport.hpp>
#include <fabric/json/value.hpp>
#include <fabric/kube/config.hpp>
#include <fabric/kube/credentials.hpp>
#include <fabric/kube/request.hpp>
#include <fabric/kube/resource.hpp>
#include <fabric/kube/watch.hpp>
#include <fabric/telemetry/metrics.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fabric::kube {

/// One page of a list. An empty `continue_token` means that it is the last one.
struct Page {
  std::vector<json::Value> items;
  std::string resource_version;
  std::string continue_token;
};

/// A whole list.
template <class T>
struct List {
  std::vector<T> items;
  std::string resource_version;
};

struct ClientOptions {
  Duration timeout{30'000};   ///< Of every request except watches: from sending to the last byte of the answer.
  std::string field_manager;  ///< For create, update and patches; apply names its own. Empty: the server's guess.
};

/// Talks to one API server. Errors of every function: not_found, already_exists, conflict, gone, invalid, unauthorized,
/// forbidden, unavailable (429, 5xx, no connection; `retry_after(error)` has the server's wish), timeout. Messages name
/// verb, kind and object and carry the server's own message. One request per call: nothing is retried, except once
/// after a 401 when the token file has a new token. Runs on one io thread; must outlive its calls.
class Client {
 public:
  /// `server` and `credentials` as `connect` makes them; tests pass any Transport.
  Client(http::Transport& transport, http::Url server, std::shared_ptr<Credentials> credentials, async::Clock& clock,
         telemetry::Registry& metrics, ClientOptions options = {});

  // Untyped: any resource, objects as trees.
  async::Task<Result<json::Value>> get(ResourceId resource, ObjectKey key);
  async::Task<Result<Page>> list_page(ResourceId resource, Selection selection, PageOptions page);
  /// All pages; starts again once without paging when a continue token expires.
  async::Task<Result<List<json::Value>>> list(ResourceId resource, Selection selection);
  async::Task<Result<std::unique_ptr<WatchStream>>> watch(ResourceId resource, Selection selection,
                                                          WatchOptions options);
  async::Task<Result<json::Value>> create(ResourceId resource, json::Value object);
  /// Replaces; metadata.resourceVersion in the object makes it conditional.
  async::Task<Result<json::Value>> update(ResourceId resource, json::Value object);
  async::Task<Result<json::Value>> update_status(ResourceId resource, json::Value object);
  /// Server-side apply: sends only the fields that we own. apiVersion and kind are filled in when absent.
  async::Task<Result<json::Value>> apply(ResourceId resource, json::Value object, ApplyOptions options);
  async::Task<Result<json::Value>> apply_status(ResourceId resource, json::Value object, ApplyOptions options);
  async::Task<Result<json::Value>> merge_patch(ResourceId resource, ObjectKey key, json::Value patch);
  async::Task<Result<json::Value>> patch_status(ResourceId resource, ObjectKey key, json::Value patch);
  async::Task<Result<json::Value>> json_patch(ResourceId resource, ObjectKey key, json::Value patch);
  /// Deletion was accepted; finalizers may keep the object for a while. not_found when it was not there.
  async::Task<Result<void>> remove(ResourceId resource, ObjectKey key, RemoveOptions options = {});

  /// A request as is, e.g. GET /version or a subresource like serviceaccounts/x/token. `what` names it in errors.
  async::Task<Result<json::Value>> call(ApiRequest request, std::string what);

  // Typed: the kind comes from T::kGvk. The answer is read back as T.
  template <api::KubeObject T>
  async::Task<Result<T>> get(ObjectKey key) {
    FABRIC_CO_TRY(const json::Value value, co_await get(resource_of<T>(), std::move(key)));
    co_return api::from_object<T>(value);
  }

  template <api::KubeObject T>
  async::Task<Result<List<T>>> list(Selection selection = {}) {
    FABRIC_CO_TRY(const auto raw, co_await list(resource_of<T>(), std::move(selection)));
    List<T> out{{}, raw.resource_version};
    out.items.reserve(raw.items.size());
    for (const json::Value& item : raw.items) {
      FABRIC_CO_TRY(T object, api::from_object<T>(item));
      out.items.push_back(std::move(object));
    }
    co_return out;
  }

  template <api::KubeObject T>
  async::Task<Result<T>> create(T object) {
    FABRIC_CO_TRY(const json::Value value, co_await create(resource_of<T>(), api::to_object(object)));
    co_return api::from_object<T>(value);
  }

  template <api::KubeObject T>
  async::Task<Result<T>> update(T object) {
    FABRIC_CO_TRY(const json::Value value, co_await update(resource_of<T>(), api::to_object(object)));
    co_return api::from_object<T>(value);
  }

  template <api::KubeObject T>
  async::Task<Result<T>> apply(T object, ApplyOptions options) {
    FABRIC_CO_TRY(const json::Value value,
                  co_await apply(resource_of<T>(), api::to_object(object), std::move(options)));
    co_return api::from_object<T>(value);
  }

  template <api::KubeObject T>
  async::Task<Result<T>> apply_status(T object, ApplyOptions options) {
    FABRIC_CO_TRY(const json::Value value,
                  co_await apply_status(resource_of<T>(), api::to_object(object), std::move(options)));
    co_return api::from_object<T>(value);
  }

  template <api::KubeObject T>
  async::Task<Result<void>> remove(ObjectKey key, RemoveOptions options = {}) {
    co_return co_await remove(resource_of<T>(), std::move(key), std::move(options));
  }

 private:
  async::Task<Result<http::Response>> exchange(ApiRequest request);
  http::Request prepare(const ApiRequest& request) const;
  void count(const ApiRequest& request, const std::string& code);
  void own(ApiRequest& request) const;

  http::Transport& transport_;
  http::Url server_;
  std::shared_ptr<Credentials> credentials_;
  async::Clock& clock_;
  telemetry::Registry& metrics_;
  ClientOptions options_;
};

/// A Client with the transport that its Config describes.
struct Connection {
  std::unique_ptr<http::Transport> transport;
  std::unique_ptr<Client> client;
};

/// Does no I/O except reading a token file. Errc::invalid for a bad URL, certificate or key; not_found for a token
/// file.
Result<Connection> connect(async::Executor executor, Config config, async::Clock& clock, telemetry::Registry& metrics,
                           ClientOptions options = {});

}  // namespace fabric::kube
