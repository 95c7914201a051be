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
  co_return co_await announcer_->publish(std::move(publication), std::move(leaving));
}

Task<Result<void>> Agent::clean_kernel() {
  FABRIC_CO_TRY(const auto observed, co_await env_.kernel.observe(netstate::kGatewaySlices));
  SaMemory none;
  FABRIC_CO_CHECK(co_await apply(observed, {}, none));
  api::Gateway gateway;
  gateway.metadata.name = options_.node;
  gateway.metadata.ns = options_.ns;
  gateway.metadata.annotations[std::string(names::kCleanedAnnotation)] =
      fmt::format("{}@{}", names::kGatewayName, *options_.uninstall);
  gateway.status.version = version();
  gateway.status.local_endpoint.cluster_id = options_.cluster_id;
  co_return co_await write_gateway(std::move(gateway));
}

Task<Result<void>> Agent::uninstall() {
  FABRIC_CO_CHECK(co_await wait_synced());
  env_.health.remove("stores");
  const async::Backoff backoff{.initial = Duration{200}, .max = Duration{5'000}};
  for (unsigned attempt = 0; attempt < kGoodByes; ++attempt) {
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
