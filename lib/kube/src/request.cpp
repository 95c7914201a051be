#include <fabric/http/url.hpp>
#include <fabric/kube/request.hpp>

#include <fmt/format.h>

#include <string_view>

namespace fabric::kube {
namespace {

constexpr std::string_view kJson = "application/json";

std::string_view media_type(PatchType type) {
  switch (type) {
    case PatchType::merge:
      return "application/merge-patch+json";
    case PatchType::json:
      return "application/json-patch+json";
  }
  return {};
}

std::string_view to_string(Propagation propagation) {
  switch (propagation) {
    case Propagation::background:
      return "Background";
    case Propagation::foreground:
      return "Foreground";
    case Propagation::orphan:
      return "Orphan";
  }
  return {};
}

ApiRequest with_body(http::Method method, std::string path, std::string_view content_type, const json::Value& body) {
  return ApiRequest{method, std::move(path), {}, std::string(content_type), json::write(body)};
}

void add_selection(ApiRequest& request, const Selection& selection) {
  if (!selection.label_selector.empty()) request.query.emplace_back("labelSelector", selection.label_selector);
  if (!selection.field_selector.empty()) request.query.emplace_back("fieldSelector", selection.field_selector);
}

}  // namespace

std::string ApiRequest::target() const {
  std::string out = path;
  char separator = '?';
  for (const auto& [name, value] : query) {
    out += separator;
    out += http::percent_encode(name) + "=" + http::percent_encode(value);
    separator = '&';
  }
  return out;
}

std::string collection_path(const ResourceId& resource, const std::string& ns) {
  std::string path = resource.group.empty() ? "/api/" : "/apis/" + http::percent_encode(resource.group) + "/";
  path += http::percent_encode(resource.version);
  if (resource.namespaced && !ns.empty()) path += "/namespaces/" + http::percent_encode(ns);
  return path + "/" + http::percent_encode(resource.plural);
}

std::string object_path(const ResourceId& resource, const ObjectKey& key, const std::string& subresource) {
  std::string path = collection_path(resource, key.ns) + "/" + http::percent_encode(key.name);
  if (!subresource.empty()) path += "/" + http::percent_encode(subresource);
  return path;
}

ApiRequest get_request(const ResourceId& resource, const ObjectKey& key) {
  return ApiRequest{http::Method::get, object_path(resource, key), {}, {}, {}};
}

ApiRequest list_request(const ResourceId& resource, const Selection& selection, const PageOptions& page) {
  ApiRequest request{http::Method::get, collection_path(resource, selection.ns), {}, {}, {}};
  add_selection(request, selection);
  if (page.limit > 0) request.query.emplace_back("limit", fmt::to_string(page.limit));
  if (!page.continue_token.empty()) request.query.emplace_back("continue", page.continue_token);
  return request;
}

ApiRequest watch_request(const ResourceId& resource, const Selection& selection, const WatchOptions& options) {
  ApiRequest request{http::Method::get, collection_path(resource, selection.ns), {}, {}, {}};
  add_selection(request, selection);
  request.query.emplace_back("watch", "true");
  request.query.emplace_back("allowWatchBookmarks", "true");
  request.query.emplace_back("resourceVersion", options.resource_version);
  request.query.emplace_back("timeoutSeconds", fmt::to_string(options.timeout.count()));
  return request;
}

ApiRequest create_request(const ResourceId& resource, const std::string& ns, const json::Value& object) {
  return with_body(http::Method::post, collection_path(resource, ns), kJson, object);
}

ApiRequest update_request(const ResourceId& resource, const ObjectKey& key, const json::Value& object,
                          const std::string& subresource) {
  return with_body(http::Method::put, object_path(resource, key, subresource), kJson, object);
}

ApiRequest apply_request(const ResourceId& resource, const ObjectKey& key, const json::Value& object,
                         const ApplyOptions& options, const std::string& subresource) {
  // JSON is a subset of YAML; API servers before 1.30 know only this media type for apply.
  ApiRequest request =
      with_body(http::Method::patch, object_path(resource, key, subresource), "application/apply-patch+yaml", object);
  request.query.emplace_back("fieldManager", options.field_manager);
  request.query.emplace_back("force", options.force ? "true" : "false");
  return request;
}

ApiRequest patch_request(const ResourceId& resource, const ObjectKey& key, PatchType type, const json::Value& patch,
                         const std::string& subresource) {
  return with_body(http::Method::patch, object_path(resource, key, subresource), media_type(type), patch);
}

ApiRequest remove_request(const ResourceId& resource, const ObjectKey& key, const RemoveOptions& options) {
  json::Object preconditions;
  if (!options.uid.empty()) preconditions.emplace("uid", options.uid);
  if (!options.resource_version.empty()) preconditions.emplace("resourceVersion", options.resource_version);
  json::Object body;
  body.emplace("apiVersion", "v1");
  body.emplace("kind", "DeleteOptions");
  body.emplace("propagationPolicy", std::string(to_string(options.propagation)));
  if (!preconditions.empty()) body.emplace("preconditions", std::move(preconditions));
  return with_body(http::Method::del, object_path(resource, key), kJson, json::Value(std::move(body)));
}

}  // namespace fabric::kube
