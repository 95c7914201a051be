#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/kube/resource.hpp>

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace fabric::controller {

/// The rules of client-go's work queue, pure. Fair: keys leave in the order in which they came. Stingy: one key is
/// never worked on twice at a time, and a key that is added several times before it is taken is taken once. A key that
/// is added while it is worked on is taken again after `done`.
class QueueState {
 public:
  /// Returns whether the key was not waiting already.
  bool add(const kube::ObjectKey& key);

  /// The key becomes due at `at`; an earlier time wins over one that is already noted.
  void add_at(const kube::ObjectKey& key, async::SteadyTime at);

  /// Moves the delayed keys that are due at `now` into the queue; returns how many were not there already.
  std::size_t promote(async::SteadyTime now);

  /// The next key, marked as being worked on.
  std::optional<kube::ObjectKey> take();

  /// The work on a key ended.
  void done(const kube::ObjectKey& key);

  /// When the earliest delayed key becomes due.
  std::optional<async::SteadyTime> next_due() const;

  std::size_t depth() const { return queue_.size(); }

  std::size_t delayed() const { return due_.size(); }

  bool idle() const { return queue_.empty() && processing_.empty(); }

 private:
  std::deque<kube::ObjectKey> queue_;
  std::set<kube::ObjectKey> dirty_;
  std::set<kube::ObjectKey> processing_;
  std::map<kube::ObjectKey, async::SteadyTime> due_;
  std::set<std::pair<async::SteadyTime, kube::ObjectKey>> by_time_;
};

}  // namespace fabric::controller
