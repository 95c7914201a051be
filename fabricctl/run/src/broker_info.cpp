#include <fabric/api/core.hpp>
#include <fabric/api/names.hpp>
#include <fabric/ctl/broker_info.hpp>

#include <fmt/format.h>

#include <ostream>

#include "reads.hpp"

namespace fabric::ctl {

namespace names = api::names;

async::Task<Result<Exit>> print_broker_info(Session session, BrokerInfoCommand command) {
  if (session.terminal && !command.yes) {
    co_return fail(Errc::invalid,
                   "broker-info holds the pre-shared key of all clusters and a token, and standard output is a "
                   "terminal: redirect it into a file that only you can read, or add --yes");
  }
  const kube::ObjectKey key{std::string(names::kBrokerNamespace), std::string(names::kBrokerInfo)};
  auto found = co_await session.client.get<api::ConfigMap>(key);
  if (!found && found.error().code == Errc::not_found) {
    co_return fail(Errc::not_found,
                   "ConfigMap {}: there is none in this cluster: ask the broker's cluster (--context), or "
                   "apply a Fabric with spec.brokerConfig and wait until it is Ready",
                   key);
  }
  if (!found) co_return std::unexpected(std::move(found).error());
  FABRIC_CO_TRY(const BrokerInfoManifest manifest, broker_info_manifest(*found));
  for (const std::string& warning : manifest.warnings)
    session.err << "warning: " << warning << '\n';
  session.err
      << "WARNING: what follows holds SECRETS: the pre-shared key of all clusters and a token that can ask to join.\n"
         "Keep it as you keep a key. On the joining cluster: kubectl apply -f FILE\n";
  session.out << manifest.yaml;
  co_return Exit::done;
}

}  // namespace fabric::ctl
