#include <fabric/api/names.hpp>
#include <fabric/ctl/gateway_keys.hpp>
#include <fabric/json/time.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include "reads.hpp"

namespace fabric::ctl {

namespace names = api::names;

namespace {

/// A gateway that was asked.
struct Asked {
  std::set<std::string> before;
  RekeyPhase phase = RekeyPhase::asked;
};

using AskedGateways = std::map<std::string, Asked>;

async::Task<Result<void>> ask(Session session, std::string node) {
  // With the fraction, so that two commands within a second are two.
  const std::string value = json::format_micro_time(session.clock.now());
  json::Value patch;
  patch["metadata"]["annotations"][names::kRekeyAnnotation] = value;
  const kube::ObjectKey key{std::string(names::kOperatorNamespace), std::move(node)};
  FABRIC_CO_CHECK(co_await session.client.merge_patch(kube::resource_of<api::Gateway>(), key, std::move(patch)));
  co_return Result<void>();
}

/// Says what is new about a gateway since the last look.
void follow(Session session, Asked& asked, const api::Gateway& gateway) {
  const RekeyPhase phase = rekey_phase(asked.before, gateway);
  if (phase == asked.phase) return;
  const std::string& node = gateway.metadata.name;
  if (asked.phase == RekeyPhase::asked) {
    session.out << fmt::format("Gateway {}: {}; the older keys drain\n", node,
                               describe_newest(gateway, session.clock.now()));
  }
  if (phase == RekeyPhase::done) session.out << fmt::format("Gateway {}: done, the older keys are gone\n", node);
  session.out.flush();
  asked.phase = phase;
}

std::string open_gateways(const AskedGateways& asked) {
  std::vector<std::string> out;
  for (const auto& [node, each] : asked) {
    if (each.phase == RekeyPhase::asked) out.push_back(fmt::format("{} (no newer keys: is its agent running?)", node));
    if (each.phase == RekeyPhase::draining)
      out.push_back(fmt::format("{} (a peer may still use the older keys)", node));
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

async::Task<Result<Exit>> wait(Session session, AskedGateways asked, Duration timeout) {
  const async::SteadyTime until = session.clock.steady() + timeout;
  while (true) {
    const auto gateways = co_await read_gateways(session);
    if (!gateways && !is_passing(gateways.error())) co_return std::unexpected(gateways.error());
    for (const api::Gateway& gateway : gateways ? *gateways : std::vector<api::Gateway>{}) {
      const auto found = asked.find(gateway.metadata.name);
      if (found != asked.end()) follow(session, found->second, gateway);
    }
    if (std::ranges::all_of(asked, [](const auto& each) { return each.second.phase == RekeyPhase::done; })) {
      co_return Exit::done;
    }
    if (session.clock.steady() >= until) break;
    FABRIC_CO_CHECK(co_await async::sleep_for(session.clock, kPollInterval));
  }
  session.err << fmt::format("not finished after {}: {}; rekeying goes on by itself\n", json::format_duration(timeout),
                             open_gateways(asked));
  co_return Exit::not_done;
}

}  // namespace

async::Task<Result<Exit>> rekey(Session session, RekeyCommand command) {
  FABRIC_CO_TRY(auto all, co_await read_gateways(session));
  FABRIC_CO_TRY(const auto chosen, choose_gateways(std::move(all), command.gateways, command.all));
  AskedGateways asked;
  for (const api::Gateway& gateway : chosen) {
    const std::string& node = gateway.metadata.name;
    asked[node].before = generations(gateway);
    if (command.wait && asked[node].before.empty()) {
      co_return fail(Errc::unsupported,
                     "Gateway {}: status.keys shows no generation, so there is nothing to wait for: see its "
                     "status.statusFailure and version, or leave --wait out",
                     api::object_key(gateway.metadata));
    }
  }
  for (const auto& [node, each] : asked) {
    FABRIC_CO_CHECK(co_await ask(session, node));
    session.out << fmt::format("Gateway {}: asked for new keys\n", node) << std::flush;
  }
  if (!command.wait) co_return Exit::done;
  co_return co_await wait(session, std::move(asked), command.timeout);
}

}  // namespace fabric::ctl
