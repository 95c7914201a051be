#include <fabric/controller/reflector.hpp>
#include <fabric/telemetry/log.hpp>

#include <utility>
#include <variant>

namespace fabric::controller {

Reflector::Reflector(std::string name, std::unique_ptr<ListWatch> source, Sink& sink, Runtime runtime)
    : name_(std::move(name)),
      source_(std::move(source)),
      sink_(sink),
      runtime_(std::move(runtime)),
      fsm_(runtime_.random, runtime_.max_wait) {}

async::Task<Result<void>> Reflector::run() {
  while (true)
    FABRIC_CO_CHECK(co_await step());
}

// Returns an error only when cancelled.
async::Task<Result<void>> Reflector::step() {
  const WatcherFsm::Action action = fsm_.next();
  if (const auto* page = std::get_if<WatcherFsm::ListPage>(&action)) co_return co_await list(*page);
  if (const auto* start = std::get_if<WatcherFsm::StartWatch>(&action)) co_return co_await open(*start);
  if (std::holds_alternative<WatcherFsm::ReadEvents>(action)) co_return co_await read();
  FABRIC_CO_CHECK(co_await async::sleep_for(runtime_.clock, std::get<WatcherFsm::Wait>(action).delay));
  fsm_.on_waited();
  co_return Result<void>();
}

async::Task<Result<void>> Reflector::list(WatcherFsm::ListPage wanted) {
  auto page = co_await source_->list_page(kube::PageOptions{wanted.limit, wanted.continue_token});
  if (!page) {
    if (page.error().code == Errc::cancelled) co_return std::unexpected(std::move(page).error());
    note_failure("list", page.error());
    fsm_.on_list_error(page.error());
    co_return Result<void>();
  }
  if (auto items = fsm_.on_page(*std::move(page))) sink_.replace(*std::move(items));
  co_return Result<void>();
}

async::Task<Result<void>> Reflector::open(WatcherFsm::StartWatch start) {
  auto stream = co_await source_->watch(kube::WatchOptions{start.resource_version, start.timeout});
  if (!stream) {
    if (stream.error().code == Errc::cancelled) co_return std::unexpected(std::move(stream).error());
    note_failure("watch", stream.error());
    fsm_.on_watch_error(stream.error(), runtime_.clock.steady());
    co_return Result<void>();
  }
  stream_ = *std::move(stream);
  fsm_.on_watch_started(runtime_.clock.steady());
  note_success();
  co_return Result<void>();
}

async::Task<Result<void>> Reflector::read() {
  auto events = co_await stream_->read();
  if (!events) {
    if (events.error().code == Errc::cancelled) co_return std::unexpected(std::move(events).error());
    stream_.reset();
    // An expired resource version and a cut connection are the daily life of a watch; only failing to resume is news.
    log::debug("watch ended", {{"collection", name_}, {"error", events.error()}});
    fsm_.on_watch_error(events.error(), runtime_.clock.steady());
    co_return Result<void>();
  }
  if (events->empty()) {
    stream_.reset();
    fsm_.on_watch_ended(runtime_.clock.steady());
    co_return Result<void>();
  }
  for (const kube::WatchEvent& event : *events) {
    fsm_.on_event(event);
    if (event.type != kube::WatchType::bookmark) sink_.change(event);
  }
  co_return Result<void>();
}

void Reflector::note_failure(std::string_view verb, const Error& error) {
  runtime_.metrics
      .counter("fabric_reflector_failures_total", "Lists and watches of a collection that failed.",
               {{"collection", name_}, {"verb", std::string(verb)}})
      .add();
  if (!std::exchange(healthy_, false)) return;
  log::warn("collection not reachable", {{"collection", name_}, {"verb", verb}, {"error", error}});
}

void Reflector::note_success() {
  if (std::exchange(healthy_, true)) return;
  log::info("collection reachable again", {{"collection", name_}});
}

void log_unreadable(const kube::ObjectKey& key, const Error& error) {
  log::warn("object does not fit its type", {{"object", key}, {"error", error}});
}

}  // namespace fabric::controller
