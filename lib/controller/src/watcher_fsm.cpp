#include <fabric/controller/watcher_fsm.hpp>
#include <fabric/kube/resource.hpp>
#include <fabric/kube/status.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace fabric::controller {
namespace {

// client-go's reflector: 0.8 s doubling (tools/cache/reflector.go). The random part only shortens the wait.
constexpr Duration kFirstWait{800};
constexpr int kPageSize = 500;
// Between 5 and 10 minutes, so that the watches of many agents do not end together.
constexpr double kMinWatchSeconds = 300;
// A watch that ends sooner and without an event is a failure: the server would be asked in a hot loop.
constexpr std::chrono::seconds kVeryShortWatch{1};
// A watch that stood this long proves that the server is well, also when nothing happened.
constexpr std::chrono::seconds kLongWatch{30};

}  // namespace

WatcherFsm::Action WatcherFsm::next() {
  if (wait_) return Wait{*wait_};
  switch (state_) {
    case State::empty:
      state_ = State::listing;
      [[fallthrough]];
    case State::listing:
      return ListPage{unpaged_ ? 0 : kPageSize, continue_token_};
    case State::listed:
      return StartWatch{resource_version_,
                        std::chrono::seconds(static_cast<int>(kMinWatchSeconds * (1.0 + random_())))};
    case State::watching:
      return ReadEvents{};
  }
  return Wait{max_wait_};
}

std::optional<WatcherFsm::Replacement> WatcherFsm::on_page(kube::Page page) {
  items_.insert(items_.end(), std::make_move_iterator(page.items.begin()), std::make_move_iterator(page.items.end()));
  continue_token_ = std::move(page.continue_token);
  if (!continue_token_.empty()) return std::nullopt;
  // All pages of one list show the same state, that of the resource version in each of them.
  resource_version_ = std::move(page.resource_version);
  state_ = State::listed;
  unpaged_ = false;
  return std::exchange(items_, {});
}

void WatcherFsm::on_list_error(const Error& error) {
  const bool token_expired = error.code == Errc::gone && !continue_token_.empty();
  restart_list();
  if (token_expired) {
    unpaged_ = true;
    return;
  }
  back_off(&error);
}

void WatcherFsm::on_watch_started(async::SteadyTime now) {
  state_ = State::watching;
  watch_started_ = now;
  watch_saw_event_ = false;
}

void WatcherFsm::on_watch_error(const Error& error, async::SteadyTime now) {
  note_lived(now);
  if (error.code == Errc::gone) {
    restart_list();
    // The first 410 is normal after a long pause. One right after a fresh list is not: then the list waits its turn.
    if (failures_++ == 0) return;
    return back_off(&error);
  }
  // An answer that says that the collection is not there or not allowed, or that cannot be read: only a new list tells.
  if (error.code == Errc::unavailable || error.code == Errc::timeout)
    state_ = State::listed;
  else
    restart_list();
  back_off(&error);
}

void WatcherFsm::on_watch_ended(async::SteadyTime now) {
  note_lived(now);
  state_ = State::listed;
  if (!watch_saw_event_ && now - watch_started_ < kVeryShortWatch) back_off(nullptr);
}

void WatcherFsm::on_event(const kube::WatchEvent& event) {
  failures_ = 0;
  watch_saw_event_ = true;
  std::string version = kube::resource_version_of(event.object);
  if (!version.empty()) resource_version_ = std::move(version);
}

void WatcherFsm::on_waited() {
  wait_.reset();
}

void WatcherFsm::restart_list() {
  state_ = State::empty;
  continue_token_.clear();
  items_.clear();
}

void WatcherFsm::note_lived(async::SteadyTime now) {
  if (state_ == State::watching && now - watch_started_ >= kLongWatch) failures_ = 0;
}

void WatcherFsm::back_off(const Error* error) {
  const async::Backoff backoff{.initial = kFirstWait, .max = max_wait_, .factor = 2.0, .jitter = 0.5};
  wait_ = backoff.delay(failures_++, random_());
  if (error == nullptr) return;
  if (const auto asked = kube::retry_after(*error)) wait_ = std::max(*wait_, *asked);
}

}  // namespace fabric::controller
