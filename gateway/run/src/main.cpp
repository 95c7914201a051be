#include <fabric/api/names.hpp>
#include <fabric/async/clock.hpp>
#include <fabric/async/task_group.hpp>
#include <fabric/async/worker.hpp>
#include <fabric/base/version.hpp>
#include <fabric/gateway/agent.hpp>
#include <fabric/gateway/encap_socket.hpp>
#include <fabric/http/server.hpp>
#include <fabric/kernel/composition.hpp>
#include <fabric/kernel/host_facts.hpp>
#include <fabric/kernel/netns_lock.hpp>
#include <fabric/kernel/route_monitor.hpp>
#include <fabric/kernel/xfrm.hpp>
#include <fabric/kube/client.hpp>
#include <fabric/program/program.hpp>
#include <fabric/telemetry/log.hpp>

#include <boost/asio/io_context.hpp>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace fabric::gateway {

namespace {

constexpr Duration kShutdownGrace{5'000};
/// An API server that does not answer holds up a pass no longer than this.
constexpr Duration kRequestLimit{10'000};

/// A route agent holds the lock for the moment in which it clears what an earlier gateway left.
constexpr int kLockTries = 50;
constexpr Duration kLockPause{100};

/// Two gateway agents in one network namespace would remove each other's SAs.
Result<kernel::NetnsLock> be_the_only_one() {
  for (int tries = 1;; ++tries) {
    auto lock = kernel::take_netns_lock(kernel::kGatewaySlicesLock);
    if (lock || lock.error().code != Errc::unavailable) return lock;
    if (tries == kLockTries) {
      return std::unexpected(std::move(lock).error().with(
          "another fabric-gateway runs on this node; find it with pgrep -a fabric-gateway"));
    }
    std::this_thread::sleep_for(kLockPause);
  }
}

struct Drivers {
  std::vector<std::unique_ptr<kernel::Driver>> drivers;
  kernel::FactsReader facts;
};

Result<Drivers> open_drivers() {
  Drivers result;
  FABRIC_TRY(auto xfrm, kernel::XfrmDriver::open());
  FABRIC_CHECK(xfrm->set_policy_hash_thresholds());
  FABRIC_TRY(auto reader, kernel::HostFactsReader::open());
  result.facts = [reader = std::shared_ptr(std::move(reader))](const kernel::FactsRequest& request) {
    return reader->read(request);
  };
  result.drivers.push_back(std::move(xfrm));
  return result;
}

async::Task<Result<void>> watch_kernel(kernel::RouteMonitor& monitor, Agent& agent) {
  while (co_await monitor.wait())
    agent.kernel_changed();
  co_return Result<void>();
}

/// What the kernel says of SAs only wakes the agent, which looks at counters anyway: a lost event costs a second.
async::Task<Result<void>> watch_sas(async::Executor executor, async::Clock& clock, Agent& agent) {
  constexpr Duration kReopen{5'000};
  while (!co_await async::cancelled()) {
    const auto events = kernel::open_sa_events(executor, {.flushes = true});
    if (!events) log::warn("no events of SAs; they are looked at every second", {{"error", events.error().message()}});
    while (events && co_await (*events)->next())
      agent.kernel_changed();
    if (!co_await async::sleep_for(clock, kReopen)) break;
  }
  co_return Result<void>();
}

async::Task<Result<void>> receive_encapsulated(async::TaskGroup& group, async::Executor executor, async::Clock& clock,
                                               std::uint16_t port, Agent& agent, std::unique_ptr<EncapSocket>& holder) {
  holder = co_await open_when_free(executor, clock, port, controller::system_random(),
                                   [&agent](std::string failure) { agent.encapsulation(std::move(failure)); });
  if (!holder) co_return Result<void>();
  group.spawn("encapsulation IPv6", holder->drain_ipv6());
  co_return co_await holder->drain_ipv4();
}

/// So that the first join does not wait for the kernel to load ciphers. On the worker, which nobody needs until the
/// stores have synced; what fails here fails again, and is said, when a real SA is added.
async::Task<Result<void>> warm_up(async::Worker& worker, std::vector<netstate::Aead> aeads) {
  const auto done = co_await worker.run([aeads = std::move(aeads)]() -> Result<void> {
    FABRIC_TRY(const auto driver, kernel::XfrmDriver::open());
    for (const auto aead : aeads)
      FABRIC_CHECK(driver->warm_up(aead));
    return {};
  });
  if (!done) log::debug("warming up the ciphers", {{"error", done.error().message()}});
  co_return Result<void>();
}

Result<void> run(const Options& options) {
  FABRIC_TRY(const auto level, log::parse_level(options.log_level));
  log::set_level(level);
  log::info("fabric-gateway starts", {{"version", version()}, {"node", options.node}, {"cluster", options.cluster_id}});
  boost::asio::io_context io(1);
  async::Worker worker("kernel");
  async::SystemClock clock(io.get_executor());
  telemetry::Registry metrics;
  telemetry::Health health;
  crypto::SystemEntropy entropy;
  auto credentials = read_credentials(options.secrets);
  // An uninstall has to come to its end also where the Secrets are gone already.
  if (!credentials && !options.uninstall) return std::unexpected(std::move(credentials).error());
  if (!credentials) log::warn("uninstalling without credentials", {{"error", credentials.error().message()}});
  const kube::ClientOptions client_options{.timeout = kRequestLimit, .field_manager = "fabric-gateway"};
  FABRIC_TRY(auto config, program::api_server(options.kubeconfig));
  FABRIC_TRY(const auto local, kube::connect(io.get_executor(), std::move(config), clock, metrics, client_options));
  kube::Connection broker;
  if (credentials) {
    FABRIC_TRY(broker,
               kube::connect(io.get_executor(), std::move(credentials->broker), clock, metrics, client_options));
  }
  FABRIC_TRY(const auto lock, be_the_only_one());
  FABRIC_TRY(auto drivers, open_drivers());
  const auto kernel = kernel::compose(worker, std::move(drivers.drivers), std::move(drivers.facts));
  FABRIC_TRY(auto monitor, kernel::RouteMonitor::open(io.get_executor()));
  std::unique_ptr<EncapSocket> encap;
  const controller::Runtime runtime{io.get_executor(), clock, controller::system_random(), metrics};
  async::TaskGroup group(io.get_executor());
  UdpTunnelPort tunnel(group, io.get_executor(), clock, api::names::kRecordsPort);
  Agent agent(options, credentials ? *std::move(credentials) : Credentials{},
              {*local.client, broker.client.get(), *kernel, entropy, runtime, health, &tunnel,
               [] { return kernel::read_xfrm_stat(); }});
  group.spawn("http server", http::serve_when_free(io.get_executor(), clock, controller::system_random(),
                                                   {.address = options.listen_address, .port = options.listen_port},
                                                   http::observability_handlers(metrics, health)));
  group.spawn("kernel changes", watch_kernel(monitor, agent));
  if (!options.uninstall) {
    std::vector<netstate::Aead> aeads;
    for (const auto suite : options.cipher_suites)
      aeads.push_back(aead_of(suite));
    group.spawn("warm-up", warm_up(worker, std::move(aeads)));
    group.spawn("SA events", watch_sas(io.get_executor(), clock, agent));
    group.spawn("encapsulation",
                receive_encapsulated(group, io.get_executor(), clock, options.natt_port, agent, encap));
  }
  FABRIC_CHECK(agent.start(group));
  return async::run_until_stopped(io, group, kShutdownGrace);
}

}  // namespace

}  // namespace fabric::gateway

int main(int argc, char** argv) {
  const auto options = fabric::gateway::parse_options(argc, argv);
  const auto done = options ? fabric::gateway::run(*options) : fabric::Result<void>(std::unexpected(options.error()));
  return fabric::program::finish("fabric-gateway", done);
}
