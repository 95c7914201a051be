#include <fabric/kube/client.hpp>
#include <fabric/kube/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fabric::kube {
namespace {

// How long after its own end of a watch the server may still be silent.
constexpr Duration kWatchGrace{5'000};
// An error document of a watch is one Status; what is longer comes from somewhere else.
constexpr std::size_t kMaxErrorBody = std::size_t{64} << 10U;

std::string describe(std::string_view verb, const ResourceId& resource, const std::string& object) {
  return object.empty() ? fmt::format("{} {}", verb, resource.plural)
                        : fmt::format("{} {} {}", verb, resource.kind, object);
}

std::string describe_list(std::string_view verb, const ResourceId& resource, const Selection& selection) {
  return selection.ns.empty() ? fmt::format("{} {}", verb, resource.plural)
                              : fmt::format("{} {} in {}", verb, resource.plural, selection.ns);
}

void name_kind(json::Value& object, const ResourceId& resource) {
  if (object.find("apiVersion") == nullptr) object["apiVersion"] = resource.api_version();
  if (object.find("kind") == nullptr) object["kind"] = resource.kind;
}

std::string_view header(const http::Response& response, std::string_view name) {
  return http::find_header(response.headers, name).value_or(std::string_view());
}

class HttpWatchStream final : public WatchStream {
 public:
  HttpWatchStream(std::unique_ptr<http::BodyStream> body, async::Clock& clock, std::string what,
                  async::SteadyTime deadline)
      : body_(std::move(body)), clock_(clock), what_(std::move(what)), deadline_(deadline) {}

  async::Task<Result<std::vector<WatchEvent>>> read() override {
    std::vector<WatchEvent> events;
    while (events.empty()) {
      if (broken_) co_return std::unexpected(*broken_);
      const Duration left = async::Deadline{deadline_}.remaining(clock_.steady());
      if (left <= Duration::zero()) co_return fail(Errc::timeout, "{}: the server does not end the watch", what_);
      auto chunk = co_await body_->next(left);
      if (!chunk) co_return std::unexpected(std::move(chunk).error().with(what_));
      if (chunk->empty()) {
        if (decoder_.at_boundary()) co_return events;
        co_return fail(Errc::unavailable, "{}: the stream ended inside of an event", what_);
      }
      auto fed = decoder_.feed(*chunk, events);
      if (!fed) broken_ = std::move(fed).error().with(what_);
    }
    co_return events;
  }

 private:
  std::unique_ptr<http::BodyStream> body_;
  async::Clock& clock_;
  std::string what_;
  async::SteadyTime deadline_;
  WatchDecoder decoder_;
  std::optional<Error> broken_;
};

async::Task<Error> stream_error(http::BodyStream& body, std::string what, Duration timeout) {
  std::string text;
  while (text.size() < kMaxErrorBody) {
    auto chunk = co_await body.next(timeout);
    if (!chunk || chunk->empty()) break;
    text += *chunk;
  }
  co_return error_of_response(body.head().status, what, text, header(body.head(), "Retry-After"));
}

bool is_success(int status) {
  return status >= 200 && status < 300;
}

}  // namespace

Client::Client(http::Transport& transport, http::Url server, std::shared_ptr<Credentials> credentials,
               async::Clock& clock, telemetry::Registry& metrics, ClientOptions options)
    : transport_(transport),
      server_(std::move(server)),
      credentials_(std::move(credentials)),
      clock_(clock),
      metrics_(metrics),
      options_(std::move(options)) {}

http::Request Client::prepare(const ApiRequest& request) const {
  // The server's URL may have a path of its own, as behind a proxy of several clusters.
  std::string prefix = server_.target;
  while (!prefix.empty() && prefix.back() == '/')
    prefix.pop_back();
  http::Request out{request.method, server_.with_target(prefix + request.target()), {}, request.body, nullptr};
  out.headers.push_back({"Accept", "application/json"});
  if (!request.content_type.empty()) out.headers.push_back({"Content-Type", request.content_type});
  out.bearer = credentials_->token();
  return out;
}

void Client::count(const ApiRequest& request, const std::string& code) {
  metrics_
      .counter(
          "rest_client_requests_total", "Requests to API servers, by answer.",
          {{"code", code}, {"method", std::string(http::to_string(request.method))}, {"host", server_.authority()}})
      .add();
}

async::Task<Result<http::Response>> Client::exchange(ApiRequest request) {
  constexpr int kUnauthorized = 401;
  const async::Deadline deadline{clock_.steady() + options_.timeout};
  auto response = co_await transport_.send(prepare(request), deadline);
  count(request, response ? fmt::to_string(response->status) : "<error>");
  if (!response || response->status != kUnauthorized || !credentials_->refused()) co_return response;
  response = co_await transport_.send(prepare(request), deadline);
  count(request, response ? fmt::to_string(response->status) : "<error>");
  co_return response;
}

async::Task<Result<json::Value>> Client::call(ApiRequest request, std::string what) {
  auto response = co_await exchange(std::move(request));
  if (!response) co_return std::unexpected(std::move(response).error().with(what));
  if (!is_success(response->status)) {
    co_return std::unexpected(
        error_of_response(response->status, what, response->body, header(*response, "Retry-After")));
  }
  co_return json::parse(response->body).with(what);
}

async::Task<Result<json::Value>> Client::get(ResourceId resource, ObjectKey key) {
  co_return co_await call(get_request(resource, key), describe("get", resource, key.text()));
}

async::Task<Result<Page>> Client::list_page(ResourceId resource, Selection selection, PageOptions page) {
  const std::string what = describe_list("list", resource, selection);
  FABRIC_CO_TRY(json::Value answer, co_await call(list_request(resource, selection, page), what));
  Page out{{}, resource_version_of(answer), answer.string_at({"metadata", "continue"})};
  json::Value* items = answer.find("items");
  if (items == nullptr || items->is_null()) co_return out;
  if (!items->is_array()) co_return fail(Errc::invalid, "{}: the answer's items are no list", what);
  out.items = std::move(*items->if_array());
  co_return out;
}

async::Task<Result<List<json::Value>>> Client::list(ResourceId resource, Selection selection) {
  List<json::Value> out;
  PageOptions options;
  while (true) {
    auto page = co_await list_page(resource, selection, options);
    if (!page) {
      if (page.error().code != Errc::gone || options.continue_token.empty())
        co_return std::unexpected(std::move(page).error());
      out.items.clear();
      options = PageOptions{.limit = 0, .continue_token = {}};
      continue;
    }
    std::ranges::move(page->items, std::back_inserter(out.items));
    out.resource_version = std::move(page->resource_version);
    if (page->continue_token.empty()) co_return out;
    options.continue_token = std::move(page->continue_token);
  }
}

async::Task<Result<std::unique_ptr<WatchStream>>> Client::watch(ResourceId resource, Selection selection,
                                                                WatchOptions options) {
  constexpr int kUnauthorized = 401;
  std::string what = describe_list("watch", resource, selection);
  const ApiRequest request = watch_request(resource, selection, options);
  const async::SteadyTime start = clock_.steady();
  const async::Deadline deadline{start + options_.timeout};
  auto body = co_await transport_.open_stream(prepare(request), deadline);
  count(request, body ? fmt::to_string((*body)->head().status) : "<error>");
  if (body && (*body)->head().status == kUnauthorized && credentials_->refused()) {
    body = co_await transport_.open_stream(prepare(request), deadline);
    count(request, body ? fmt::to_string((*body)->head().status) : "<error>");
  }
  if (!body) co_return std::unexpected(std::move(body).error().with(what));
  if (!is_success((*body)->head().status))
    co_return std::unexpected(co_await stream_error(**body, std::move(what), deadline.remaining(clock_.steady())));
  co_return std::make_unique<HttpWatchStream>(*std::move(body), clock_, std::move(what),
                                              start + options.timeout + kWatchGrace);
}

async::Task<Result<json::Value>> Client::create(ResourceId resource, json::Value object) {
  name_kind(object, resource);
  const ObjectKey key = key_of(object);
  ApiRequest request = create_request(resource, key.ns, object);
  own(request);
  co_return co_await call(std::move(request), describe("create", resource, key.text()));
}

async::Task<Result<json::Value>> Client::update(ResourceId resource, json::Value object) {
  name_kind(object, resource);
  const ObjectKey key = key_of(object);
  ApiRequest request = update_request(resource, key, object);
  own(request);
  co_return co_await call(std::move(request), describe("update", resource, key.text()));
}

async::Task<Result<json::Value>> Client::update_status(ResourceId resource, json::Value object) {
  name_kind(object, resource);
  const ObjectKey key = key_of(object);
  ApiRequest request = update_request(resource, key, object, "status");
  own(request);
  co_return co_await call(std::move(request), describe("update status of", resource, key.text()));
}

async::Task<Result<json::Value>> Client::apply(ResourceId resource, json::Value object, ApplyOptions options) {
  name_kind(object, resource);
  const ObjectKey key = key_of(object);
  co_return co_await call(apply_request(resource, key, object, options), describe("apply", resource, key.text()));
}

async::Task<Result<json::Value>> Client::apply_status(ResourceId resource, json::Value object, ApplyOptions options) {
  name_kind(object, resource);
  const ObjectKey key = key_of(object);
  co_return co_await call(apply_request(resource, key, object, options, "status"),
                          describe("apply status of", resource, key.text()));
}

async::Task<Result<json::Value>> Client::merge_patch(ResourceId resource, ObjectKey key, json::Value patch) {
  ApiRequest request = patch_request(resource, key, PatchType::merge, patch);
  own(request);
  co_return co_await call(std::move(request), describe("patch", resource, key.text()));
}

async::Task<Result<json::Value>> Client::patch_status(ResourceId resource, ObjectKey key, json::Value patch) {
  ApiRequest request = patch_request(resource, key, PatchType::merge, patch, "status");
  own(request);
  co_return co_await call(std::move(request), describe("patch status of", resource, key.text()));
}

async::Task<Result<json::Value>> Client::json_patch(ResourceId resource, ObjectKey key, json::Value patch) {
  ApiRequest request = patch_request(resource, key, PatchType::json, patch);
  own(request);
  co_return co_await call(std::move(request), describe("patch", resource, key.text()));
}

async::Task<Result<void>> Client::remove(ResourceId resource, ObjectKey key, RemoveOptions options) {
  FABRIC_CO_CHECK(co_await call(remove_request(resource, key, options), describe("delete", resource, key.text())));
  co_return Result<void>();
}

void Client::own(ApiRequest& request) const {
  if (!options_.field_manager.empty()) request.query.emplace_back("fieldManager", options_.field_manager);
}

}  // namespace fabric::kube
