#pragma once

#include <fabric/async/backoff.hpp>
#include <fabric/async/clock.hpp>
#include <fabric/base/error.hpp>
#include <fabric/base/time.hpp>
#include <fabric/controller/runtime.hpp>
#include <fabric/json/value.hpp>
#include <fabric/kube/client.hpp>
#include <fabric/kube/watch.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace fabric::controller {

/// How one collection is listed and then watched, as client-go's reflector does: pure, driven by Informer.
///
///   empty ──list──▶ listing ──last page──▶ listed ──watch opened──▶ watching
///     ▲                │ error: back off       ▲    error, end: back off │
///     └── 410 ─────────┴───────────────────────┴─────────────────────────┘
///
/// Call `next()`, do what it says, report the outcome with exactly one `on_...` (any number of `on_event` while
/// watching), repeat. The store keeps its last content during errors.
class WatcherFsm {
 public:
  enum class State { empty, listing, listed, watching };

  struct ListPage {
    int limit;
    std::string continue_token;
    bool operator==(const ListPage&) const = default;
  };

  struct StartWatch {
    std::string resource_version;
    std::chrono::seconds timeout;
    bool operator==(const StartWatch&) const = default;
  };

  struct ReadEvents {
    bool operator==(const ReadEvents&) const = default;
  };

  struct Wait {
    Duration delay;
    bool operator==(const Wait&) const = default;
  };

  using Action = std::variant<ListPage, StartWatch, ReadEvents, Wait>;

  /// The whole collection, to replace what the store holds.
  using Replacement = std::vector<json::Value>;

  WatcherFsm(RandomSource random, Duration max_wait) : random_(std::move(random)), max_wait_(max_wait) {}

  Action next();

  std::optional<Replacement> on_page(kube::Page page);
  void on_list_error(const Error& error);
  void on_watch_started(async::SteadyTime now);
  void on_watch_error(const Error& error, async::SteadyTime now);  ///< Opening or reading failed.
  void on_watch_ended(async::SteadyTime now);                      ///< The server closed it in order.
  void on_event(const kube::WatchEvent& event);
  void on_waited();

  State state() const { return state_; }

  const std::string& resource_version() const { return resource_version_; }

 private:
  void restart_list();
  void note_lived(async::SteadyTime now);
  void back_off(const Error* error);

  RandomSource random_;
  Duration max_wait_;
  unsigned failures_ = 0;  ///< Since the last sign that watching works: an event, or a watch that lived.
  State state_ = State::empty;
  std::string resource_version_;
  std::string continue_token_;
  bool unpaged_ = false;  ///< A continue token expired: ask for everything at once, so that a list ends.
  Replacement items_;
  std::optional<Duration> wait_;
  async::SteadyTime watch_started_;
  bool watch_saw_event_ = false;
};

}  // namespace fabric::controller
