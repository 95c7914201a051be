#include <fabric/ctl/gateway_keys.hpp>
#include <fabric/ctl/table.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace fabric::ctl {

namespace {

/// Numbers decide between generations of the same second.
auto rank(const api::KeyGeneration& generation) {
  return std::tuple(generation.drawn_at, generation.generation.size(), generation.generation);
}

const api::KeyGeneration* newest(const api::Gateway& gateway) {
  if (!gateway.status.keys) return nullptr;
  const auto& all = gateway.status.keys->generations;
  const auto found = std::ranges::max_element(all, {}, rank);
  return found == all.end() ? nullptr : &*found;
}

std::string rejected(const api::GatewayKeys& keys) {
  std::vector<std::string> out;
  for (const auto& each : keys.rejected)
    out.push_back(fmt::format("{} of {} ({})", each.count, each.endpoint, each.reason));
  return fmt::format("{}", fmt::join(out, ", "));
}

std::string names_of(const std::vector<api::Gateway>& gateways) {
  std::vector<std::string> out;
  for (const api::Gateway& each : gateways)
    out.push_back(each.metadata.name);
  return out.empty() ? "none" : fmt::format("{}", fmt::join(out, ", "));
}

}  // namespace

std::string keys_table(const std::vector<api::Gateway>& gateways, TimePoint now) {
  Table table{{"GATEWAY", "GENERATION", "AGE", "REASON", "HELD", "PSK IDS", "REKEYS", "REJECTED RECORDS"}, {}};
  for (const api::Gateway& gateway : gateways) {
    if (!gateway.status.keys) continue;
    const api::GatewayKeys& keys = *gateway.status.keys;
    std::vector<std::string> row{
        gateway.metadata.name, "", "", "", std::to_string(keys.generations.size()), "", std::to_string(keys.rekeys),
        rejected(keys)};
    if (const api::KeyGeneration* latest = newest(gateway)) {
      row[1] = latest->generation;
      row[2] = age(now, latest->drawn_at);
      row[3] = latest->reason;
      row[5] = fmt::format("{}", fmt::join(latest->psk_ids, ", "));
    }
    table.rows.push_back(std::move(row));
  }
  return render(table);
}

std::set<std::string> generations(const api::Gateway& gateway) {
  std::set<std::string> out;
  if (!gateway.status.keys) return out;
  for (const api::KeyGeneration& each : gateway.status.keys->generations)
    out.insert(each.generation);
  return out;
}

RekeyPhase rekey_phase(const std::set<std::string>& before, const api::Gateway& now) {
  const std::set<std::string> held = generations(now);
  const bool newer = !std::ranges::includes(before, held);
  if (!newer) return RekeyPhase::asked;
  const bool older = std::ranges::any_of(held, [&](const std::string& each) { return before.contains(each); });
  return older ? RekeyPhase::draining : RekeyPhase::done;
}

std::string describe_newest(const api::Gateway& gateway, TimePoint now) {
  const api::KeyGeneration* latest = newest(gateway);
  if (latest == nullptr) return "no keys";
  return fmt::format("generation {}, drawn {} ago ({})", latest->generation, age(now, latest->drawn_at),
                     latest->reason);
}

Result<std::vector<api::Gateway>> choose_gateways(std::vector<api::Gateway> gateways,
                                                  const std::vector<std::string>& wanted, bool all) {
  if (!all && wanted.empty()) {
    return fail(Errc::invalid, "which gateways? Name some with --gateway NODE, or say --all; there are: {}",
                names_of(gateways));
  }
  for (const std::string& name : wanted) {
    const bool there =
        std::ranges::any_of(gateways, [&](const api::Gateway& each) { return each.metadata.name == name; });
    if (there) continue;
    return fail(Errc::not_found, "--gateway {}: no Gateway of this cluster has that name; there are: {}", name,
                names_of(gateways));
  }
  if (gateways.empty()) {
    return fail(Errc::not_found,
                "this cluster has no Gateway: only a member has; see the conditions in fabricctl status");
  }
  if (!all)
    std::erase_if(gateways, [&](const api::Gateway& each) {
      return std::ranges::find(wanted, each.metadata.name) == wanted.end();
    });
  return gateways;
}

}  // namespace fabric::ctl
