#include <fabric/api/names.hpp>
#include <fabric/async/backoff.hpp>
#include <fabric/base/version.hpp>
#include <fabric/gateway/agent.hpp>
#include <fabric/netstate/diff.hpp>
#include <fabric/telemetry/log.hpp>

namespace fabric::gateway {

namespace names = api::names;
using async::Task;

namespace {

/// Tries of a good-bye to a broker that may be gone for ever.
constexpr unsigned kGoodByes = 3;
/// Wait for the objects that a good-bye names.
constexpr Duration kLocalGrace{10'000};

}  // namespace

Task<Result<void>> Agent::say_good_bye() {
  FABRIC_CO_CHECK(open_ring());
  FABRIC_CO_TRY(const auto facts, co_await env_.kernel.facts({}));
  FABRIC_CO_TRY(auto leaving, situation(facts));
  leaving.leaving = true;
  FABRIC_CO_CHECK(ring_->draw(env_.runtime.clock.now(), SaLimits{}.hard_lifetime));
  Publication publication;
  for (const auto& generation : ring_->mine())
    publication.generations.push_back(generation.generation);
  FABRIC_CO_CHECK(co_await announcer_->publish(std::move(publication), std::move(leaving)));
  if (co_await async::cancelled()) co_return fail(Errc::cancelled, "stopping");
  co_return co_await announcer_->write_local();
}

Task<Result<void>> Agent::clean_kernel() {
  FABRIC_CO_TRY(const auto observed, co_await env_.kernel.observe(netstate::kGatewaySlices));
  SaMemory none;
  FABRIC_CO_CHECK(co_await apply(observed, {}, none));
  if (co_await async::cancelled()) co_return fail(Errc::cancelled, "stopping");
  api::Gateway gateway;
  gateway.metadata.name = options_.node;
  gateway.metadata.ns = options_.ns;
  gateway.metadata.annotations[std::string(names::kCleanedAnnotation)] =
      fmt::format("{}@{}", names::kGatewayName, *options_.uninstall);
  gateway.status.version = version();
  gateway.status.local_endpoint.cluster_id = options_.cluster_id;
  co_return co_await write_gateway(std::move(gateway));
}

Task<bool> Agent::own_objects_known() {
  const auto limit = env_.runtime.clock.steady() + kLocalGrace;
  const auto node = co_await own_node_.store().wait_synced_until(env_.runtime.clock, limit);
  const auto endpoints = co_await endpoints_.store().wait_synced_until(env_.runtime.clock, limit);
  const auto clusters = co_await clusters_.store().wait_synced_until(env_.runtime.clock, limit);
  co_return node && *node&& endpoints && *endpoints&& clusters && *clusters;
}

Task<Result<void>> Agent::uninstall() {
  const async::Backoff backoff{.initial = Duration{200}, .max = Duration{5'000}};
  // Without credentials or an API server there is nobody to say good-bye to; the kernel is cleaned all the same.
  const bool can_speak = env_.broker != nullptr && co_await own_objects_known();
  if (!can_speak) log::warn("no good-bye: the credentials for the broker or this cluster's objects are not there");
  env_.health.remove("stores");
  for (unsigned attempt = 0; can_speak && attempt < kGoodByes; ++attempt) {
    const auto said = co_await say_good_bye();
    if (said) break;
    log::warn("the good-bye did not reach the broker", {{"error", said.error().message()}});
    if (!co_await async::sleep_for(env_.runtime.clock, backoff.delay(attempt, env_.runtime.random())))
      co_return Result<void>();
  }
  for (unsigned attempt = 0;; ++attempt) {
    const auto done = co_await clean_kernel();
    if (done) break;
    log::warn("uninstall is not complete", {{"error", done.error().message()}});
    if (!co_await async::sleep_for(env_.runtime.clock, backoff.delay(attempt, env_.runtime.random())))
      co_return Result<void>();
  }
  log::info("everything of ours is removed from this node");
  env_.health.set("kernel", true);
  while (co_await wake_.wait()) {
  }
  co_return Result<void>();
}

}  // namespace fabric::gateway
