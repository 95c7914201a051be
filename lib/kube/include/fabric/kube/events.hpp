#pragma once

#include <fabric/api/event.hpp>
#include <fabric/async/clock.hpp>
#include <fabric/async/event.hpp>
#include <fabric/async/task.hpp>
#include <fabric/kube/client.hpp>
#include <fabric/kube/resource.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

namespace fabric::kube {

enum class EventKind { normal, warning };

struct EventOptions {
  std::string controller;                      ///< "fabric.tkestack.io/operator"
  std::string instance;                        ///< The pod's or node's name.
  std::string fallback_namespace = "default";  ///< For events about cluster-scoped objects.
  std::size_t max_pending = 100;
  int burst = 25;                   ///< As client-go's spam filter, over all objects.
  Duration refill{2'000};           ///< One more event each.
  Duration series_window{360'000};  ///< Repeats within it become one series.
};

/// Writes events.k8s.io/v1 Events. `record` never waits and never fails: an event that repeats raises the count of its
/// series, and what exceeds the rate or the backlog is dropped and counted (fabric_events_dropped_total). Belongs to
/// the io thread.
class EventRecorder {
 public:
  EventRecorder(Client& client, async::Executor executor, async::Clock& clock, telemetry::Registry& metrics,
                EventOptions options);

  /// `reason` and `action` are CamelCase words; `note` is for people and cut at 1024 bytes.
  void record(api::ObjectReference regarding, EventKind kind, std::string_view reason, std::string_view action,
              std::string_view note);

  /// Everything that was recorded has been sent or dropped.
  bool idle() const { return pending_.empty() && !sending_; }

  /// Sends what was recorded, until cancelled. Errors are logged, not returned.
  async::Task<Result<void>> run();

 private:
  struct Series {
    api::Event event;  ///< As it is to be written; its series counts from the second time on.
    bool created = false;
    bool queued = false;
  };

  bool take_token();
  void forget_old();
  async::Task<Result<void>> send(std::string identity);

  Client& client_;
  async::Clock& clock_;
  EventOptions options_;
  std::map<std::string, Series> series_;
  std::deque<std::string> pending_;
  bool sending_ = false;
  async::Notifier wake_;
  double tokens_;
  async::SteadyTime refilled_;
  std::uint64_t last_name_ = 0;
  telemetry::Counter dropped_;
};

/// Cuts UTF-8 text at a character boundary so that it has at most `max_bytes`, with "..." at the end when cut.
std::string cut_text(std::string_view text, std::size_t max_bytes);

}  // namespace fabric::kube
