#include <fabric/gateway/agent.hpp>
#include <fabric/gateway/syncer.hpp>

/// What passes leave to be written at API servers. Each server has a loop of its own, so that one that takes its time
/// to answer holds up neither the kernel nor the other.
namespace fabric::gateway {

using async::Task;

Task<Result<void>> Agent::keep_broker_told() {
  while (co_await for_broker_.wait()) {
    if (unpublished_ && publishing_.due(env_.runtime.clock.steady())) co_await publish(*unpublished_);
    if (co_await async::cancelled()) break;
  }
  co_return Result<void>();
}

Task<void> Agent::publish(Publication publication) {
  const auto done = co_await announcer_->publish(std::move(publication), situation_);
  if (co_await async::cancelled()) co_return;
  // Passes that did not know of this went on asking for it. The next one says what is still missing.
  unpublished_.reset();
  note(publishing_, done);
  env_.runtime.metrics
      .gauge("fabric_publication_failing", "1 while what this gateway has to say does not reach the broker.")
      .set(done ? 0 : 1);
  // Ready in any case: traffic does not need the broker.
  env_.health.set("broker", true, publishing_.failure());
  if (!done) co_return;
  published_at_ = env_.runtime.clock.steady();
  wake_.notify();
}

Task<Result<void>> Agent::keep_objects_written() {
  while (co_await for_objects_.wait()) {
    if (announcer_->local_due() && local_endpoint_.due(env_.runtime.clock.steady()))
      note(local_endpoint_, co_await announcer_->write_local());
    if (co_await async::cancelled()) break;
    co_await copy_down();
    if (co_await async::cancelled()) break;
    co_await report();
    if (co_await async::cancelled()) break;
  }
  co_return Result<void>();
}

Task<void> Agent::copy_down() {
  if (!elector_->is_leader() || !copying_.due(env_.runtime.clock.steady())) co_return;
  const CopyInputs inputs{.own_cluster = options_.cluster_id,
                          .ns = options_.ns,
                          .broker_endpoints = broker_endpoints_.store().snapshot(),
                          .broker_clusters = broker_clusters_.store().snapshot(),
                          .local_endpoints = endpoints_.store().snapshot(),
                          .local_clusters = clusters_.store().snapshot(),
                          .membership = &membership_,
                          .broker_known = broker_endpoints_.store().synced() && broker_clusters_.store().synced(),
                          .carried = carried_};
  note(copying_, co_await write_copies(env_.local, plan_copies(inputs)));
}

}  // namespace fabric::gateway
