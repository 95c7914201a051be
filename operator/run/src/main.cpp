#include <fabric/async/clock.hpp>
#include <fabric/async/task_group.hpp>
#include <fabric/base/version.hpp>
#include <fabric/controller/lease_elector.hpp>
#include <fabric/controller/runtime.hpp>
#include <fabric/crypto/entropy.hpp>
#include <fabric/http/server.hpp>
#include <fabric/kube/config.hpp>
#include <fabric/kube/events.hpp>
#include <fabric/operator/operator.hpp>
#include <fabric/operator/options.hpp>
#include <fabric/program/program.hpp>
#include <fabric/telemetry/log.hpp>

#include <boost/asio/io_context.hpp>

namespace fabric::operators {
namespace {

constexpr Duration kShutdownGrace{5'000};

/// Metrics may be open to others than probes, so each has its port.
http::Handlers only(http::Handlers handlers, bool metrics) {
  std::erase_if(handlers, [metrics](const auto& entry) { return (entry.first == "/metrics") != metrics; });
  return handlers;
}

/// Works only while leading. Losing the lease ends the process: a new one starts from what the objects say.
async::Task<Result<void>> lead(controller::LeaseElector& elector, Operator& instance, async::TaskGroup& group) {
  FABRIC_CO_CHECK(co_await elector.wait_leading());
  elector.on_change([&group](bool leading) {
    if (leading) return;
    if (!group.stopping()) log::error("the lease was lost");
    group.stop();
  });
  log::info("leading");
  co_return co_await instance.run(group);
}

async::Task<Result<void>> elect(controller::LeaseElector& elector) {
  const auto ended = co_await elector.run();
  if (!ended && ended.error().code != Errc::cancelled) co_return ended;
  co_return Result<void>();
}

Result<void> run(const Options& options) {
  FABRIC_TRY(const auto level, log::parse_level(options.log_level));
  log::set_level(level);
  log::info("fabric-operator starts",
            {{"version", version()}, {"namespace", options.ns}, {"agents", options.agents.image}});
  boost::asio::io_context io(1);
  async::SystemClock clock(io.get_executor());
  telemetry::Registry metrics;
  telemetry::Health health;
  crypto::SystemEntropy entropy;
  FABRIC_TRY(auto config, program::api_server(options.kubeconfig));
  const kube::ClientOptions client_options{.timeout = Duration{30'000}, .field_manager = "fabric-operator"};
  FABRIC_TRY(auto connection, kube::connect(io.get_executor(), std::move(config), clock, metrics, client_options));
  const controller::Runtime runtime{io.get_executor(), clock, controller::system_random(), metrics};
  Environment env{.client = *connection.client,
                  .entropy = entropy,
                  .clock = clock,
                  .connect_broker = [&](BrokerAccess access) -> Result<kube::Connection> {
                    FABRIC_TRY(auto broker, kube::explicit_config(std::move(access.url), std::move(access.ca_pem),
                                                                  std::move(access.token), std::move(access.ns)));
                    // A broker that does not answer must not hold up the work on our own cluster.
                    return kube::connect(io.get_executor(), std::move(broker), clock, metrics,
                                         {.timeout = Duration{8'000}, .field_manager = "fabric-operator"});
                  },
                  .ns = options.ns,
                  .agents = options.agents};
  kube::EventOptions event_options;
  event_options.controller = "fabric.tkestack.io/operator";
  event_options.instance = options.identity;
  kube::EventRecorder events(*connection.client, io.get_executor(), clock, metrics, event_options);
  controller::LeaseOptions lease;
  lease.identity = options.identity;
  FABRIC_TRY(const auto elector,
             controller::LeaseElector::open(*connection.client, {options.ns, "fabric-operator"}, lease, runtime));
  Operator instance(env, events, runtime, health);
  const http::Handlers handlers = http::observability_handlers(metrics, health);
  FABRIC_TRY(const auto metrics_server,
             http::Server::open(io.get_executor(), {.address = options.listen_address, .port = options.metrics_port},
                                only(handlers, true)));
  FABRIC_TRY(const auto probe_server,
             http::Server::open(io.get_executor(), {.address = options.listen_address, .port = options.probe_port},
                                only(handlers, false)));
  // A standby is ready too, but nobody is who does not reach the API server.
  health.set("election", false, "waiting for the API server");
  elector->on_served([&health](const std::string& failure) { health.set("election", failure.empty(), failure); });
  async::TaskGroup group(io.get_executor());
  group.spawn("metrics", metrics_server->run());
  group.spawn("probes", probe_server->run());
  group.spawn("events", events.run());
  group.spawn("election", elect(*elector));
  group.spawn("operator", lead(*elector, instance, group));
  return async::run_until_stopped(io, group, kShutdownGrace);
}

}  // namespace
}  // namespace fabric::operators

int main(int argc, char** argv) {
  const auto options = fabric::operators::parse_options(argc, argv);
  const auto done = options ? fabric::operators::run(*options) : fabric::Result<void>(std::unexpected(options.error()));
  return fabric::program::finish("fabric-operator", done);
}
