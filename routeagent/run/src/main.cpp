#include <fabric/async/clock.hpp>
#include <fabric/async/task_group.hpp>
#include <fabric/async/worker.hpp>
#include <fabric/base/version.hpp>
#include <fabric/http/server.hpp>
#include <fabric/kernel/composition.hpp>
#include <fabric/kernel/filter.hpp>
#include <fabric/kernel/host_facts.hpp>
#include <fabric/kernel/route.hpp>
#include <fabric/kernel/route_monitor.hpp>
#include <fabric/kernel/sysctl.hpp>
#include <fabric/kernel/xfrm.hpp>
#include <fabric/kube/client.hpp>
#include <fabric/program/program.hpp>
#include <fabric/routeagent/agent.hpp>
#include <fabric/telemetry/log.hpp>

#include <boost/asio/io_context.hpp>

#include <filesystem>
#include <memory>

namespace fabric::routeagent {

namespace {

constexpr Duration kShutdownGrace{5'000};

/// A container's own /proc/sys is read-only; the DaemonSet mounts the writable one of the node here.
constexpr std::string_view kMountedSysctls = "/host/proc/sys";

kernel::SysctlOptions sysctl_options() {
  kernel::SysctlOptions options;
  std::error_code error;
  if (std::filesystem::exists(kMountedSysctls, error)) options.root = kMountedSysctls;
  return options;
}

/// The drivers of the route agent's slices, and what it must know of the host.
struct Drivers {
  std::vector<std::unique_ptr<kernel::Driver>> drivers;
  kernel::FactsReader facts;
  GatewayLock gateway_lock;
};

Result<Drivers> open_drivers() {
  Drivers result;
  FABRIC_TRY(auto routes, kernel::RouteDriver::open());
  FABRIC_TRY(auto sysctls, kernel::SysctlDriver::open(sysctl_options()));
  FABRIC_TRY(auto filter, kernel::PacketFilter::open({}));
  FABRIC_TRY(auto reader, kernel::HostFactsReader::open(sysctl_options()));
  log::info("packet filter chosen", {{"reason", filter->detection().reason}});
  result.facts = [reader = std::shared_ptr(std::move(reader)),
                  backend = filter->backend()](const kernel::FactsRequest& request) -> Result<netstate::HostFacts> {
    FABRIC_TRY(auto facts, reader->read(request));
    facts.filter_backend = backend;
    return facts;
  };
  if (auto xfrm = kernel::XfrmDriver::open()) {
    result.drivers.push_back(*std::move(xfrm));
    result.gateway_lock = [] { return kernel::take_netns_lock(kernel::kGatewaySlicesLock); };
  } else {
    log::debug("this node cannot have been a gateway", {{"error", xfrm.error().message()}});
  }
  result.drivers.push_back(std::move(sysctls));
  result.drivers.push_back(std::move(routes));
  result.drivers.push_back(std::move(filter));
  return result;
}

async::Task<Result<void>> watch_kernel(kernel::RouteMonitor& monitor, Agent& agent) {
  while (co_await monitor.wait())
    agent.kernel_changed();
  co_return Result<void>();
}

Result<void> run(const Options& options) {
  FABRIC_TRY(const auto level, log::parse_level(options.log_level));
  log::set_level(level);
  log::info("fabric-routeagent starts",
            {{"version", version()}, {"node", options.node}, {"cluster", options.cluster_id}});
  boost::asio::io_context io(1);
  async::Worker worker("kernel");
  async::SystemClock clock(io.get_executor());
  telemetry::Registry metrics;
  telemetry::Health health;
  FABRIC_TRY(auto config, program::api_server(options.kubeconfig));
  FABRIC_TRY(auto connection, kube::connect(io.get_executor(), std::move(config), clock, metrics,
                                            {.field_manager = "fabric-routeagent"}));
  FABRIC_TRY(auto drivers, open_drivers());
  const auto kernel = kernel::compose(worker, std::move(drivers.drivers), std::move(drivers.facts));
  FABRIC_TRY(auto monitor, kernel::RouteMonitor::open(io.get_executor()));
  const controller::Runtime runtime{io.get_executor(), clock, controller::system_random(), metrics};
  async::TaskGroup group(io.get_executor());
  Agent agent(options, *connection.client, *kernel, runtime, health, std::move(drivers.gateway_lock));
  group.spawn("http server", http::serve_when_free(io.get_executor(), clock, controller::system_random(),
                                                   {.address = options.listen_address, .port = options.listen_port},
                                                   http::observability_handlers(metrics, health)));
  group.spawn("kernel changes", watch_kernel(monitor, agent));
  agent.start(group);
  return async::run_until_stopped(io, group, kShutdownGrace);
}

}  // namespace

}  // namespace fabric::routeagent

int main(int argc, char** argv) {
  const auto options = fabric::routeagent::parse_options(argc, argv);
  const auto done =
      options ? fabric::routeagent::run(*options) : fabric::Result<void>(std::unexpected(options.error()));
  return fabric::program::finish("fabric-routeagent", done);
}
