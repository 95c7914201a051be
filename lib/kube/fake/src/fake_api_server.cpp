#include <fabric/json/time.hpp>
#include <fabric/kube/fake/fake_api_server.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <utility>

namespace fabric::kube::fake {
namespace {

struct Reason {
  int code;
  std::string_view name;
};

constexpr std::array kReasons{Reason{400, "BadRequest"},
                              Reason{401, "Unauthorized"},
                              Reason{403, "Forbidden"},
                              Reason{404, "NotFound"},
                              Reason{409, "Conflict"},
                              Reason{410, "Expired"},
                              Reason{415, "UnsupportedMediaType"},
                              Reason{422, "Invalid"},
                              Reason{429, "TooManyRequests"},
                              Reason{500, "InternalError"},
                              Reason{503, "ServiceUnavailable"},
                              Reason{504, "Timeout"}};

json::Value status_object(int code, std::string_view message, std::string_view reason = {}) {
  if (reason.empty()) {
    const auto* const found = std::ranges::find(kReasons, code, &Reason::code);
    if (found != kReasons.end()) reason = found->name;
  }
  return json::Object{{"kind", "Status"},   {"apiVersion", "v1"}, {"status", "Failure"},
                      {"message", message}, {"reason", reason},   {"code", code}};
}

http::Response respond(int status, const json::Value& body) {
  return http::Response{status, {{"Content-Type", "application/json"}}, json::write(body)};
}

http::Response refuse(int code, std::string_view message, std::string_view reason = {}) {
  return respond(code, status_object(code, message, reason));
}

http::Response not_found(const Target& target) {
  return refuse(404, fmt::format("{} \"{}\" not found", target.plural, target.key.name));
}

/// Everything that a generation counts: neither metadata nor status.
json::Value spec_part(const json::Value& object) {
  json::Value out = object;
  out.if_object()->erase("metadata");
  out.if_object()->erase("status");
  return out;
}

void copy_member(json::Value& to, const json::Value& from, std::string_view member) {
  if (const json::Value* value = from.find(member))
    to[member] = *value;
  else
    to.if_object()->erase(std::string(member));
}

bool has_finalizers(const json::Value& object) {
  const json::Value* finalizers = object.at({"metadata", "finalizers"});
  return finalizers != nullptr && finalizers->is_array() && !finalizers->if_array()->empty();
}

bool is_deleting(const json::Value& object) {
  return !object.string_at({"metadata", "deletionTimestamp"}).empty();
}

std::uint64_t number(std::string_view text) {
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

Target target_of(const ResourceId& resource, const ObjectKey& key) {
  Target target;
  target.api_version = resource.api_version();
  target.collection = (resource.group.empty() ? "/api/" : "/apis/") + target.api_version + "/" + resource.plural;
  target.plural = resource.plural;
  target.key = key;
  return target;
}

constexpr std::string_view kGone = "too old resource version";

}  // namespace

FakeApiServer::FakeApiServer(async::Executor executor, async::Clock& clock) : streams_(executor), clock_(clock) {}

FakeApiServer::~FakeApiServer() = default;

std::unique_ptr<Client> FakeApiServer::client(telemetry::Registry& metrics, ClientOptions options) {
  const http::Url url{http::Scheme::https, "fake-api-server", 443, "/"};
  return std::make_unique<Client>(*this, url, Credentials::none(), clock_, metrics, std::move(options));
}

json::Value FakeApiServer::put(const ResourceId& resource, json::Value object) {
  if (object.find("apiVersion") == nullptr) object["apiVersion"] = resource.api_version();
  if (object.find("kind") == nullptr) object["kind"] = resource.kind;
  const Target target = target_of(resource, key_of(object));
  Collection& collection = collections_[target.collection];
  if (!collection.contains(target.key)) {
    const json::Value* status = object.find("status");
    const json::Value kept = status == nullptr ? json::Value() : *status;
    create(target, std::move(object));
    if (!kept.is_null()) {
      json::Value with_status = collection.at(target.key).object;
      with_status["status"] = kept;
      store(target, std::move(with_status));
    }
  } else {
    copy_member(object["metadata"], *collection.at(target.key).object.find("metadata"), "uid");
    copy_member(object["metadata"], *collection.at(target.key).object.find("metadata"), "creationTimestamp");
    store(target, std::move(object));
  }
  return collection.at(target.key).object;
}

void FakeApiServer::erase(const ResourceId& resource, const ObjectKey& key) {
  const Target target = target_of(resource, key);
  Collection& collection = collections_[target.collection];
  const auto found = collection.find(key);
  if (found == collection.end()) return;
  json::Value object = std::move(found->second.object);
  collection.erase(found);
  json::Value before = object;
  object["metadata"]["resourceVersion"] = fmt::to_string(++version_);
  change(target, "DELETED", std::move(object), std::move(before));
}

const json::Value* FakeApiServer::find(const ResourceId& resource, const ObjectKey& key) const {
  const auto collection = collections_.find(target_of(resource, key).collection);
  if (collection == collections_.end()) return nullptr;
  const auto found = collection->second.find(key);
  return found == collection->second.end() ? nullptr : &found->second.object;
}

std::vector<ObjectKey> FakeApiServer::keys(const ResourceId& resource) const {
  std::vector<ObjectKey> out;
  const auto collection = collections_.find(target_of(resource, {}).collection);
  if (collection == collections_.end()) return out;
  for (const auto& [key, stored] : collection->second)
    out.push_back(key);
  return out;
}

void FakeApiServer::fail_next(int times, int status, std::string retry_after) {
  failures_left_ = times;
  failure_ = refuse(status, "asked to fail");
  if (!retry_after.empty()) failure_.headers.push_back({"Retry-After", std::move(retry_after)});
}

void FakeApiServer::set_unreachable(bool unreachable) {
  unreachable_ = unreachable;
  if (unreachable) cut_watches();
}

void FakeApiServer::cut_watches() {
  for (Watch& watch : watches_)
    watch.stream->fail(Error{Errc::unavailable, "connection reset", {}});
  watches_.clear();
}

void FakeApiServer::compact() {
  history_.clear();
  oldest_ = ++version_;
  for (Watch& watch : watches_) {
    push(watch, "ERROR", status_object(410, kGone));
    watch.stream->finish();
  }
  watches_.clear();
}

void FakeApiServer::bookmark() {
  const json::Value object = json::Object{{"metadata", json::Object{{"resourceVersion", fmt::to_string(version_)}}}};
  for (Watch& watch : watches_)
    push(watch, "BOOKMARK", object);
}

std::optional<Result<http::Response>> FakeApiServer::disturbed(const http::Request& request) {
  requests_.push_back(fmt::format("{} {}", http::to_string(request.method), request.url.target));
  if (request.method != http::Method::get) ++writes_;
  if (unreachable_) return fail(Errc::unavailable, "connection refused");
  if (intercept_) {
    if (auto instead = intercept_(request)) return instead;
  }
  if (failures_left_ > 0) {
    --failures_left_;
    return failure_;
  }
  return std::nullopt;
}

async::Task<Result<http::Response>> FakeApiServer::send(http::Request request, async::Deadline) {
  if (co_await async::cancelled()) co_return fail(Errc::cancelled, "request");
  if (auto instead = disturbed(request)) co_return *std::move(instead);
  if (silent_) {
    FABRIC_CO_CHECK(co_await async::sleep_for(clock_, kSilence));
    co_return fail(Errc::timeout, "no answer");
  }
  co_return answer(request);
}

async::Task<Result<std::unique_ptr<http::BodyStream>>> FakeApiServer::open_stream(http::Request request,
                                                                                  async::Deadline deadline) {
  if (co_await async::cancelled()) co_return fail(Errc::cancelled, "request");
  std::optional<http::Response> refusal;
  if (auto instead = disturbed(request)) {
    if (!*instead) co_return std::unexpected(instead->error());
    refusal = **instead;
  }
  const auto target = parse_target(request.url.target);
  if (!refusal && !target) refusal = refuse(404, "the server could not find the requested resource");
  const std::uint64_t since = target ? number(target->parameter("resourceVersion")) : 0;
  if (!refusal && since < oldest_) refusal = refuse(410, kGone);
  if (refusal) {
    auto stream = streams_.reply_stream({.status = refusal->status, .headers = refusal->headers, .body = {}});
    stream->push(refusal->body);
    stream->finish();
    co_return co_await streams_.open_stream(std::move(request), deadline);
  }
  Watch& watch = watches_.emplace_back(Watch{*target, streams_.reply_stream(), nullptr});
  const auto limit = std::chrono::seconds(number(target->parameter("timeoutSeconds")));
  watch.end = clock_.call_at(clock_.steady() + limit, [this, stream = watch.stream.get()] {
    const auto found = std::ranges::find(watches_, stream, [](const Watch& one) { return one.stream.get(); });
    if (found == watches_.end()) return;
    found->stream->finish();
    // The timer that runs this is part of the watch.
    const auto keep = std::move(found->end);
    watches_.erase(found);
  });
  for (const Change& past : history_) {
    if (past.version > since) deliver(watch, past);
  }
  co_return co_await streams_.open_stream(std::move(request), deadline);
}

http::Response FakeApiServer::answer(const http::Request& request) {
  const auto target = parse_target(request.url.target);
  if (!target) return refuse(404, "the server could not find the requested resource");
  json::Value body;
  if (!request.body.empty()) {
    auto parsed = json::parse(request.body);
    if (!parsed || !parsed->is_object()) return refuse(415, "the body is not one JSON object");
    body = *std::move(parsed);
  }
  const std::string_view type = http::find_header(request.headers, "Content-Type").value_or("");
  switch (request.method) {
    case http::Method::get:
    case http::Method::head: {
      if (target->key.name.empty()) return list(*target);
      const Collection& collection = collections_[target->collection];
      const auto found = collection.find(target->key);
      return found == collection.end() ? not_found(*target) : respond(200, found->second.object);
    }
    case http::Method::post:
      return create(*target, std::move(body));
    case http::Method::put:
      return update(*target, std::move(body));
    case http::Method::patch:
      if (type.starts_with("application/apply-patch")) return apply(*target, std::move(body));
      if (type.starts_with("application/merge-patch")) return merge(*target, body);
      return refuse(415, "this server knows merge and apply patches");
    case http::Method::del:
      return remove(*target, body);
  }
  return refuse(405, "method");
}

http::Response FakeApiServer::list(const Target& target) {
  const Collection& collection = collections_[target.collection];
  const std::size_t limit = number(target.parameter("limit"));
  std::uint64_t version = version_;
  ObjectKey after;
  // A token is "version/namespace/name" of the last object. A real server shows the state of that version; here later
  // changes show as well, which a reader of pages must stand anyhow.
  if (const std::string token = target.parameter("continue"); !token.empty()) {
    const std::size_t first = token.find('/');
    const std::size_t second = token.find('/', first + 1);
    version = number(token);
    if (first == std::string::npos || second == std::string::npos) return refuse(400, "continue key is not valid");
    if (version < oldest_) return refuse(410, "The provided continue parameter is too old");
    after = ObjectKey{token.substr(first + 1, second - first - 1), token.substr(second + 1)};
  }
  json::Array items;
  json::Value metadata = json::Object{{"resourceVersion", fmt::to_string(version)}};
  const ObjectKey* last = nullptr;
  for (auto it = after.name.empty() ? collection.begin() : collection.upper_bound(after); it != collection.end();
       ++it) {
    if (!selected(target, it->second.object)) continue;
    if (limit > 0 && items.size() == limit) {
      metadata["continue"] = fmt::format("{}/{}/{}", version, last->ns, last->name);
      break;
    }
    last = &it->first;
    items.push_back(it->second.object);
  }
  return respond(200, json::Object{{"kind", "List"},
                                   {"apiVersion", target.api_version},
                                   {"metadata", std::move(metadata)},
                                   {"items", std::move(items)}});
}

http::Response FakeApiServer::create(const Target& target, json::Value object) {
  json::Value& metadata = object["metadata"];
  if (!metadata.is_object()) metadata = json::Object{};
  ObjectKey key = key_of(object);
  if (key.ns.empty()) key.ns = target.key.ns;
  if (key.name.empty()) {
    const std::string prefix = metadata.string_at({"generateName"});
    if (prefix.empty()) return refuse(422, "metadata.name: Required value: name or generateName is required");
    key.name = fmt::format("{}{:05}", prefix, last_uid_ + 1);
  }
  if (!metadata.string_at({"resourceVersion"}).empty())
    return refuse(400, "resourceVersion should not be set on objects to be created");
  Collection& collection = collections_[target.collection];
  if (collection.contains(key))
    return refuse(409, fmt::format("{} \"{}\" already exists", target.plural, key.name), "AlreadyExists");
  metadata["name"] = key.name;
  if (!key.ns.empty()) metadata["namespace"] = key.ns;
  metadata["uid"] = fmt::format("00000000-0000-4000-8000-{:012}", ++last_uid_);
  metadata["creationTimestamp"] = json::format_time(clock_.now());
  metadata["generation"] = 1;
  metadata["resourceVersion"] = fmt::to_string(++version_);
  object.if_object()->erase("status");
  Target exact = target;
  exact.key = key;
  collection.insert_or_assign(key, Stored{object, {}});
  change(exact, "ADDED", object, {});
  return respond(201, object);
}

// Writes a whole object: no version without a change, a generation for a change of the spec, the end of a deletion.
http::Response FakeApiServer::store(const Target& target, json::Value object) {
  Collection& collection = collections_[target.collection];
  Stored& stored = collection.at(target.key);
  const json::Value before = stored.object;
  const json::Value& old_metadata = *before.find("metadata");
  json::Value& metadata = object["metadata"];
  for (const std::string_view fixed :
       {"uid", "creationTimestamp", "generation", "deletionTimestamp", "name", "namespace"})
    copy_member(metadata, old_metadata, fixed);
  metadata["resourceVersion"] = resource_version_of(before);
  if (object == before) return respond(200, object);
  if (spec_part(object) != spec_part(before)) {
    const json::Value* generation = old_metadata.find("generation");
    metadata["generation"] =
        generation != nullptr && generation->if_int64() != nullptr ? *generation->if_int64() + 1 : 1;
  }
  metadata["resourceVersion"] = fmt::to_string(++version_);
  const bool finished = is_deleting(object) && !has_finalizers(object);
  if (finished)
    collection.erase(target.key);
  else
    stored.object = object;
  change(target, finished ? "DELETED" : "MODIFIED", object, before);
  return respond(200, object);
}

http::Response FakeApiServer::update(const Target& target, json::Value object) {
  Collection& collection = collections_[target.collection];
  const auto found = collection.find(target.key);
  if (found == collection.end()) return not_found(target);
  const json::Value& now = found->second.object;
  const std::string expected = resource_version_of(object);
  if (!expected.empty() && expected != resource_version_of(now)) {
    return refuse(409, fmt::format("Operation cannot be fulfilled on {} \"{}\": the object has been modified; please "
                                   "apply your changes to the latest version and try again",
                                   target.plural, target.key.name));
  }
  const std::string uid = object.string_at({"metadata", "uid"});
  if (!uid.empty() && uid != now.string_at({"metadata", "uid"})) return refuse(409, "Precondition failed: UID");
  if (target.subresource == "status") {
    json::Value next = now;
    copy_member(next, object, "status");
    return store(target, std::move(next));
  }
  copy_member(object, now, "status");
  return store(target, std::move(object));
}

http::Response FakeApiServer::merge(const Target& target, const json::Value& patch) {
  Collection& collection = collections_[target.collection];
  const auto found = collection.find(target.key);
  if (found == collection.end()) return not_found(target);
  json::Value next = found->second.object;
  merge_patch(next, patch);
  if (patch.at({"metadata", "resourceVersion"}) == nullptr)
    next["metadata"]["resourceVersion"] = resource_version_of(found->second.object);
  return update(target, std::move(next));
}

http::Response FakeApiServer::apply(const Target& target, json::Value config) {
  const std::string manager = target.parameter("fieldManager");
  if (manager.empty()) return refuse(422, "fieldManager: Required value: is required for apply patch");
  if (config.at({"metadata", "managedFields"}) != nullptr) return refuse(400, "metadata.managedFields must be nil");
  Collection& collection = collections_[target.collection];
  const bool on_status = target.subresource == "status";
  if (on_status) {
    const auto found = collection.find(target.key);
    if (found == collection.end()) return not_found(target);
    json::Value only = json::Object{};
    copy_member(only, config, "status");
    config = std::move(only);
  } else {
    config.if_object()->erase("status");
  }
  const bool fresh = !collection.contains(target.key);
  if (fresh) {
    json::Value start = json::Object{{"metadata", json::Object{{"name", target.key.name}}}};
    for (const std::string_view member : {"apiVersion", "kind"})
      copy_member(start, config, member);
    Stored created{start, {}};
    const auto applied = apply_config(created, config, manager, true);
    if (!applied) return refuse(409, applied.error().context);
    http::Response response = create(target, created.object);
    if (response.status == 201) collection.at(target.key).managers = std::move(created.managers);
    return response;
  }
  // Each subresource has fields of its own, as managedFields has entries by subresource.
  const std::string owner = on_status ? manager + "/status" : manager;
  Stored next = collection.at(target.key);
  const auto applied = apply_config(next, config, owner, target.parameter("force") == "true");
  if (!applied) return refuse(409, applied.error().context);
  collection.at(target.key).managers = std::move(next.managers);
  return store(target, std::move(next.object));
}

http::Response FakeApiServer::remove(const Target& target, const json::Value& options) {
  Collection& collection = collections_[target.collection];
  const auto found = collection.find(target.key);
  if (found == collection.end()) return not_found(target);
  json::Value object = found->second.object;
  const std::string uid = options.string_at({"preconditions", "uid"});
  const std::string version = options.string_at({"preconditions", "resourceVersion"});
  if (!uid.empty() && uid != object.string_at({"metadata", "uid"}))
    return refuse(409, "Precondition failed: UID in precondition");
  if (!version.empty() && version != resource_version_of(object))
    return refuse(409, "Precondition failed: ResourceVersion in precondition");
  if (has_finalizers(object)) {
    if (is_deleting(object)) return respond(200, object);
    const json::Value before = object;
    object["metadata"]["deletionTimestamp"] = json::format_time(clock_.now());
    object["metadata"]["resourceVersion"] = fmt::to_string(++version_);
    found->second.object = object;
    change(target, "MODIFIED", object, before);
    return respond(200, object);
  }
  const json::Value before = object;
  collection.erase(found);
  object["metadata"]["resourceVersion"] = fmt::to_string(++version_);
  change(target, "DELETED", object, before);
  return respond(200, json::Object{{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Success"}});
}

void FakeApiServer::change(const Target& target, std::string type, json::Value object, json::Value before) {
  history_.push_back(Change{version_, target.collection, std::move(type), std::move(object), std::move(before)});
  for (Watch& watch : watches_)
    deliver(watch, history_.back());
}

// A watch with a selector sees an object that begins or ends to match as one that comes or goes.
void FakeApiServer::deliver(Watch& watch, const Change& change) {
  if (change.collection != watch.target.collection) return;
  const bool matched = !change.before.is_null() && selected(watch.target, change.before);
  const bool matches = change.type != "DELETED" && selected(watch.target, change.object);
  if (matches)
    push(watch, matched ? "MODIFIED" : "ADDED", change.object);
  else if (matched)
    push(watch, "DELETED", change.object);
}

void FakeApiServer::push(Watch& watch, std::string_view type, const json::Value& object) {
  const std::string frame = json::write(json::Object{{"type", type}, {"object", object}}) + "\n";
  const std::size_t size = chunk_size_ == 0 ? frame.size() : chunk_size_;
  for (std::size_t at = 0; at < frame.size(); at += size)
    watch.stream->push(frame.substr(at, size));
}

}  // namespace fabric::kube::fake
