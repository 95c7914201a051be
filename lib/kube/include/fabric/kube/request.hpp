#pragma once

#include <fabric/http/message.hpp>
#include <fabric/json/value.hpp>
#include <fabric/kube/resource.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fabric::kube {

/// What goes to the API server, without host, credentials and transport. Built by the pure functions below.
struct ApiRequest {
  http::Method method = http::Method::get;
  std::string path;                                        ///< Absolute, each segment percent-encoded.
  std::vector<std::pair<std::string, std::string>> query;  ///< Not encoded yet, in this order.
  std::string content_type;                                ///< Empty without a body.
  std::string body;

  bool operator==(const ApiRequest&) const = default;

  /// Path and encoded query, as it goes into the request line.
  std::string target() const;
};

/// Which objects of one kind a list or watch covers.
struct Selection {
  std::string ns;              ///< Empty: all namespaces, or a cluster-scoped kind.
  std::string label_selector;  ///< "app=x,!y"; empty selects everything.
  std::string field_selector;  ///< "metadata.name=x"; empty selects everything.

  bool operator==(const Selection&) const = default;
};

/// One page of a list. An empty `continue_token` starts from the newest state; 0 as limit asks for everything at once.
struct PageOptions {
  int limit = 500;
  std::string continue_token;
};

struct WatchOptions {
  std::string resource_version;
  std::chrono::seconds timeout{300};  ///< The server ends the watch after this time.
};

struct ApplyOptions {
  std::string field_manager;
  bool force = false;
};

enum class Propagation { background, foreground, orphan };

struct RemoveOptions {
  Propagation propagation = Propagation::background;
  std::string uid;               ///< Precondition when not empty.
  std::string resource_version;  ///< Precondition when not empty.
};

/// The patch formats that are sent. Server-side apply is its own function because it needs a field manager.
enum class PatchType { merge, json };

// `subresource` is empty or e.g. "status". Names and namespaces are encoded; they are not validated here.
std::string collection_path(const ResourceId& resource, const std::string& ns);
std::string object_path(const ResourceId& resource, const ObjectKey& key, const std::string& subresource = {});

ApiRequest get_request(const ResourceId& resource, const ObjectKey& key);
ApiRequest list_request(const ResourceId& resource, const Selection& selection, const PageOptions& page);
ApiRequest watch_request(const ResourceId& resource, const Selection& selection, const WatchOptions& options);
ApiRequest create_request(const ResourceId& resource, const std::string& ns, const json::Value& object);
ApiRequest update_request(const ResourceId& resource, const ObjectKey& key, const json::Value& object,
                          const std::string& subresource = {});
ApiRequest apply_request(const ResourceId& resource, const ObjectKey& key, const json::Value& object,
                         const ApplyOptions& options, const std::string& subresource = {});
ApiRequest patch_request(const ResourceId& resource, const ObjectKey& key, PatchType type, const json::Value& patch,
                         const std::string& subresource = {});
ApiRequest remove_request(const ResourceId& resource, const ObjectKey& key, const RemoveOptions& options);

}  // namespace fabric::kube
