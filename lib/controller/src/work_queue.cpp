#include <fabric/controller/work_queue.hpp>

#include <algorithm>
#include <utility>

namespace fabric::controller {

WorkQueue::WorkQueue(std::string name, const Runtime& runtime, RateLimiterOptions limits)
    : clock_(runtime.clock),
      limiter_(limits),
      available_(runtime.executor),
      depth_(runtime.metrics.gauge("workqueue_depth", "Keys that wait.", {{"name", name}})),
      adds_(runtime.metrics.counter("workqueue_adds_total", "Keys that were added and not merged with a waiting one.",
                                    {{"name", name}})),
      retries_(runtime.metrics.counter("workqueue_retries_total", "Keys that were added again after a failure.",
                                       {{"name", name}})) {}

void WorkQueue::add(const kube::ObjectKey& key) {
  if (shut_down_) return;
  if (state_.add(key)) adds_.add();
  refresh();
}

void WorkQueue::add_after(const kube::ObjectKey& key, Duration delay) {
  if (delay <= Duration::zero()) return add(key);
  if (shut_down_) return;
  state_.add_at(key, clock_.steady() + delay);
  arm();
}

void WorkQueue::add_rate_limited(const kube::ObjectKey& key, Duration at_least) {
  retries_.add();
  add_after(key, std::max(limiter_.when(key), at_least));
}

async::Task<Result<kube::ObjectKey>> WorkQueue::get() {
  while (true) {
    if (co_await async::cancelled()) co_return fail(Errc::cancelled, "work queue");
    if (auto key = state_.take()) {
      refresh();
      co_return *std::move(key);
    }
    if (shut_down_) co_return fail(Errc::cancelled, "work queue is shut down");
    FABRIC_CO_CHECK(co_await available_.wait());
  }
}

void WorkQueue::done(const kube::ObjectKey& key) {
  state_.done(key);
  refresh();
}

void WorkQueue::shut_down() {
  shut_down_ = true;
  timer_.reset();
  refresh();
}

// One timer for the earliest delayed key.
void WorkQueue::arm() {
  timer_.reset();
  const auto due = state_.next_due();
  if (!due) return;
  timer_ = clock_.call_at(*due, [this] {
    if (const std::size_t moved = state_.promote(clock_.steady()); moved > 0) adds_.add(static_cast<double>(moved));
    arm();
    refresh();
  });
}

void WorkQueue::refresh() {
  depth_.set(static_cast<double>(state_.depth()));
  if (state_.depth() > 0 || shut_down_)
    available_.set();
  else
    available_.clear();
}

}  // namespace fabric::controller
