#pragma once

#include <fabric/api/meta.hpp>
#include <fabric/async/event.hpp>
#include <fabric/base/error.hpp>
#include <fabric/controller/reflector.hpp>
#include <fabric/json/value.hpp>
#include <fabric/kube/resource.hpp>
#include <fabric/kube/watch.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fabric::controller {

/// The objects of one collection as last seen. Readers take snapshots, which never change; a planner works on one for
/// as long as it likes. Belongs to the io thread. T is an api::KubeObject or json::Value and need not be copyable.
template <class T>
class Store final : public Sink {
 public:
  using Map = std::map<kube::ObjectKey, std::shared_ptr<const T>>;
  using Snapshot = std::shared_ptr<const Map>;

  /// Called after the store has changed: `before` is null for a new object, `after` for a removed one. Runs on the io
  /// thread inside of the informer: it only notes a key somewhere (WorkQueue::add, Notifier::notify).
  using Handler = std::function<void(const kube::ObjectKey& key, const T* before, const T* after)>;

  explicit Store(async::Executor executor) : synced_(std::move(executor)) {}

  Snapshot snapshot() const { return objects_; }

  /// Null when there is none. The pointer stays valid as long as it is held.
  std::shared_ptr<const T> find(const kube::ObjectKey& key) const {
    const auto found = objects_->find(key);
    return found == objects_->end() ? nullptr : found->second;
  }

  /// Whether the first complete list arrived. Never becomes false again: a lost API server leaves the last known state.
  bool synced() const { return synced_.is_set(); }

  /// Errc::cancelled.
  async::Task<Result<void>> wait_synced() { return synced_.wait(); }

  /// False when the deadline came first.
  async::Task<Result<bool>> wait_synced_until(async::Clock& clock, async::SteadyTime deadline) {
    return synced_.wait_until(clock, deadline);
  }

  /// Handlers live as long as the store. One that is added late is not called for what is already there.
  void on_change(Handler handler) { handlers_.push_back(std::move(handler)); }

  /// Called when the first list is complete, after the changes that it made.
  void on_synced(std::function<void()> handler) { synced_handlers_.push_back(std::move(handler)); }

  /// Objects that do not fit T, with the reason. The store keeps the last version of them that did.
  const std::map<kube::ObjectKey, Error>& unreadable() const { return unreadable_; }

  // Sink: called by the reflector.
  void replace(std::vector<json::Value> items) override;
  void change(const kube::WatchEvent& event) override;

 private:
  static Result<std::shared_ptr<const T>> decode(const json::Value& item) {
    if constexpr (api::KubeObject<T>) {
      FABRIC_TRY(T object, api::from_object<T>(item));
      return std::make_shared<const T>(std::move(object));
    } else {
      return std::make_shared<const T>(item);
    }
  }

  Map& writable();
  void refuse(const kube::ObjectKey& key, Error error);
  void notify(const kube::ObjectKey& key, const T* before, const T* after) const;

  std::shared_ptr<Map> objects_ = std::make_shared<Map>();
  async::Event synced_;
  std::vector<Handler> handlers_;
  std::vector<std::function<void()>> synced_handlers_;
  std::map<kube::ObjectKey, Error> unreadable_;
};

/// The objects of a snapshot as values, in order of their keys: what a planner takes.
template <class T>
std::vector<T> values(const std::shared_ptr<const std::map<kube::ObjectKey, std::shared_ptr<const T>>>& snapshot) {
  std::vector<T> out;
  out.reserve(snapshot->size());
  for (const auto& [key, object] : *snapshot)
    out.push_back(*object);
  return out;
}

// Copies only while somebody holds a snapshot.
template <class T>
typename Store<T>::Map& Store<T>::writable() {
  if (objects_.use_count() > 1) objects_ = std::make_shared<Map>(*objects_);
  return *objects_;
}

template <class T>
void Store<T>::refuse(const kube::ObjectKey& key, Error error) {
  log_unreadable(key, error);
  unreadable_.insert_or_assign(key, std::move(error));
}

template <class T>
void Store<T>::notify(const kube::ObjectKey& key, const T* before, const T* after) const {
  for (const Handler& handler : handlers_)
    handler(key, before, after);
}

template <class T>
void Store<T>::replace(std::vector<json::Value> items) {
  auto next = std::make_shared<Map>();
  unreadable_.clear();
  for (const json::Value& item : items) {
    const kube::ObjectKey key = kube::key_of(item);
    auto object = decode(item);
    if (object) {
      next->insert_or_assign(key, *std::move(object));
      continue;
    }
    refuse(key, std::move(object).error());
    if (auto known = find(key)) next->insert_or_assign(key, std::move(known));
  }
  const Snapshot before = std::exchange(objects_, next);
  const Snapshot after = next;
  for (const auto& [key, object] : *after) {
    const auto known = before->find(key);
    notify(key, known == before->end() ? nullptr : known->second.get(), object.get());
  }
  for (const auto& [key, object] : *before) {
    if (!after->contains(key)) notify(key, object.get(), nullptr);
  }
  if (synced()) return;
  synced_.set();
  for (const auto& handler : synced_handlers_)
    handler();
}

template <class T>
void Store<T>::change(const kube::WatchEvent& event) {
  const kube::ObjectKey key = kube::key_of(event.object);
  if (event.type == kube::WatchType::deleted) {
    unreadable_.erase(key);
    const auto before = find(key);
    if (!before) return;
    writable().erase(key);
    notify(key, before.get(), nullptr);
    return;
  }
  auto object = decode(event.object);
  if (!object) return refuse(key, std::move(object).error());
  unreadable_.erase(key);
  const std::shared_ptr<const T> after = *std::move(object);
  const std::shared_ptr<const T> before = std::exchange(writable()[key], after);
  notify(key, before.get(), after.get());
}

}  // namespace fabric::controller
