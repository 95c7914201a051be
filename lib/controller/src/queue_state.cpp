#include <fabric/controller/queue_state.hpp>

#include <utility>

namespace fabric::controller {

bool QueueState::add(const kube::ObjectKey& key) {
  if (!dirty_.insert(key).second) return false;
  // While it is worked on, `done` puts it into the queue.
  if (!processing_.contains(key)) queue_.push_back(key);
  return true;
}

void QueueState::add_at(const kube::ObjectKey& key, async::SteadyTime at) {
  const auto [entry, fresh] = due_.try_emplace(key, at);
  if (!fresh) {
    if (entry->second <= at) return;
    by_time_.erase({entry->second, key});
    entry->second = at;
  }
  by_time_.insert({at, key});
}

std::size_t QueueState::promote(async::SteadyTime now) {
  std::size_t added = 0;
  while (!by_time_.empty() && by_time_.begin()->first <= now) {
    const auto [at, key] = *by_time_.begin();
    by_time_.erase(by_time_.begin());
    due_.erase(key);
    if (add(key)) ++added;
  }
  return added;
}

std::optional<kube::ObjectKey> QueueState::take() {
  if (queue_.empty()) return std::nullopt;
  kube::ObjectKey key = std::move(queue_.front());
  queue_.pop_front();
  dirty_.erase(key);
  processing_.insert(key);
  return key;
}

void QueueState::done(const kube::ObjectKey& key) {
  processing_.erase(key);
  if (dirty_.contains(key)) queue_.push_back(key);
}

std::optional<async::SteadyTime> QueueState::next_due() const {
  if (by_time_.empty()) return std::nullopt;
  return by_time_.begin()->first;
}

}  // namespace fabric::controller
