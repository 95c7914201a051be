#pragma once

#include <fabric/api/meta.hpp>
#include <fabric/async/clock.hpp>
#include <fabric/http/fake/scripted_transport.hpp>
#include <fabric/http/transport.hpp>
#include <fabric/json/value.hpp>
#include <fabric/kube/client.hpp>
#include <fabric/kube/fake/objects.hpp>
#include <fabric/kube/request.hpp>
#include <fabric/kube/resource.hpp>
#include <fabric/telemetry/metrics.hpp>

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fabric::kube::fake {

/// An API server in memory, behind the Transport port: no sockets, no threads, time from the given clock. It passes the
/// same contract suite (contract.hpp) as a real kube-apiserver. Where it differs:
///   - No validation, defaulting, admission, authentication or authorization: every kind is served, with a status
///     subresource, and any token is accepted. Namespaces need not exist and take nothing with them when deleted.
///   - No garbage collection: owner references have no effect; propagationPolicy is ignored.
///   - Server-side apply owns paths of maps; every list is one value (a real server merges lists of containers,
///     conditions and the like by key). managedFields are not shown. Only writes by apply own fields.
///   - Field selectors know metadata.name and metadata.namespace. JSON patch is answered with 415.
class FakeApiServer final : public http::Transport {
 public:
  FakeApiServer(async::Executor executor, async::Clock& clock);
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;
  ~FakeApiServer() override;

  /// A client of this server. The server and the registry outlive it.
  std::unique_ptr<Client> client(telemetry::Registry& metrics, ClientOptions options = {});

  // What somebody else does.

  /// Creates or replaces an object, status included; returns it as stored.
  json::Value put(const ResourceId& resource, json::Value object);

  template <api::KubeObject T>
  T put(const T& object) {
    return *api::from_object<T>(put(resource_of<T>(), api::to_object(object)));
  }

  /// Removes at once, finalizers or not.
  void erase(const ResourceId& resource, const ObjectKey& key);

  // What there is.

  const json::Value* find(const ResourceId& resource, const ObjectKey& key) const;

  template <api::KubeObject T>
  std::optional<T> find(const ObjectKey& key) const {
    const json::Value* object = find(resource_of<T>(), key);
    return object == nullptr ? std::nullopt : std::optional<T>(*api::from_object<T>(*object));
  }

  std::vector<ObjectKey> keys(const ResourceId& resource) const;

  /// "GET /api/v1/pods?limit=500", in order of arrival; watches too.
  const std::vector<std::string>& requests() const { return requests_; }

  /// Requests that were not GET: a controller at rest makes none.
  std::size_t writes() const { return writes_; }

  std::size_t open_watches() const { return watches_.size(); }

  // What goes wrong.

  /// Decides before the server does: an answer replaces the server's, nullopt leaves it to the server.
  using Intercept = std::function<std::optional<Result<http::Response>>(const http::Request&)>;

  void intercept(Intercept intercept) { intercept_ = std::move(intercept); }

  /// The next `times` requests of any kind get this status.
  void fail_next(int times, int status, std::string retry_after = {});
  /// While true, nothing is reachable and open watches are cut.
  void set_unreachable(bool unreachable);

  /// While true, a request is not answered and fails after kSilence, as behind a firewall that drops packets.
  void set_silent(bool silent) { silent_ = silent; }

  static constexpr Duration kSilence{10'000};
  /// Cuts all watches, as a dying connection does.
  void cut_watches();
  /// Forgets the past: watches from before now and continue tokens get 410; open watches get an ERROR event.
  void compact();
  /// Sends a bookmark to every open watch.
  void bookmark();

  /// Watch bytes arrive in pieces of this size; 0 is one piece per event.
  void set_chunk_size(std::size_t bytes) { chunk_size_ = bytes; }

  // Transport.
  async::Task<Result<http::Response>> send(http::Request request, async::Deadline deadline) override;
  async::Task<Result<std::unique_ptr<http::BodyStream>>> open_stream(http::Request request,
                                                                     async::Deadline deadline) override;

 private:
  struct Watch {
    Target target;
    std::shared_ptr<http::fake::ScriptedStream> stream;
    async::Timer end;
  };

  struct Change {
    std::uint64_t version;
    std::string collection;
    std::string type;
    json::Value object;
    json::Value before;
  };

  std::optional<Result<http::Response>> disturbed(const http::Request& request);
  http::Response answer(const http::Request& request);
  http::Response list(const Target& target);
  http::Response create(const Target& target, json::Value object);
  http::Response update(const Target& target, json::Value object);
  http::Response merge(const Target& target, const json::Value& patch);
  http::Response apply(const Target& target, json::Value object);
  http::Response remove(const Target& target, const json::Value& options);
  http::Response store(const Target& target, json::Value object);
  void change(const Target& target, std::string type, json::Value object, json::Value before);
  void deliver(Watch& watch, const Change& change);
  void push(Watch& watch, std::string_view type, const json::Value& object);

  http::fake::ScriptedTransport streams_;
  async::Clock& clock_;
  std::map<std::string, Collection> collections_;
  std::vector<Change> history_;
  std::list<Watch> watches_;
  std::vector<std::string> requests_;
  Intercept intercept_;
  std::uint64_t version_ = 1;
  std::uint64_t oldest_ = 1;  ///< The past before this version is forgotten.
  std::uint64_t last_uid_ = 0;
  std::size_t writes_ = 0;
  std::size_t chunk_size_ = 0;
  bool unreachable_ = false;
  bool silent_ = false;
  int failures_left_ = 0;
  http::Response failure_;
};

}  // namespace fabric::kube::fake
