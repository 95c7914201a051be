#include <fabric/api/names.hpp>
#include <fabric/json/time.hpp>
#include <fabric/operator/psk_rotation.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fabric::operators {
namespace {

using broker::MemberPskUse;
using broker::PskUse;

constexpr std::string_view kField = "spec.brokerConfig.pskNumber";

std::size_t count(const std::vector<MemberPskUse>& members, PskUse use) {
  return static_cast<std::size_t>(std::ranges::count(members, use, &MemberPskUse::use));
}

/// "'b' (Endpoint x: ...), 'c' (...)" of the clusters with this use.
std::string named(const std::vector<MemberPskUse>& members, PskUse use, bool with_reason) {
  std::vector<std::string> out;
  for (const MemberPskUse& member : members) {
    if (member.use != use) continue;
    out.push_back(with_reason ? fmt::format("'{}' ({})", member.cluster_id, member.why)
                              : fmt::format("'{}'", member.cluster_id));
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

std::string progress(const PskFacts& psk, const std::vector<MemberPskUse>& members) {
  std::string out = fmt::format("PSK {}{} is valid beside PSK {}: {} of {} clusters use it", psk.number,
                                psk.drawn_at ? fmt::format(", drawn at {},", json::format_time(*psk.drawn_at)) : "",
                                psk.number - 1, count(members, PskUse::ready), members.size());
  if (const std::string waiting = named(members, PskUse::waiting, true); !waiting.empty()) {
    out += fmt::format(
        "; waiting for {}: look at the Fabric there; if a cluster or gateway is gone for good, delete its Endpoint and "
        "Cluster objects in namespace {}",
        waiting, api::names::kBrokerNamespace);
  }
  if (const std::string away = named(members, PskUse::away, false); !away.empty()) {
    out += fmt::format("; not waiting for {}, without a live gateway: PSK {} waits for them", away, psk.number);
  }
  return out;
}

}  // namespace

RotationDecision decide_rotation(const PskFacts& psk, std::optional<std::uint32_t> wanted) {
  if (!wanted || *wanted == psk.number) return {};
  const std::uint64_t next = std::uint64_t{psk.number} + 1;
  if (psk.rotating) {
    return {.start = false,
            .refusal = fmt::format("{} {}: the rotation to PSK {} still runs: wait until status.pskRotation.phase is "
                                   "Done, or set {} to leave it",
                                   kField, *wanted, psk.number, psk.number)};
  }
  if (*wanted != next) {
    return {.start = false,
            .refusal = fmt::format("{} {}: PSK {} is current, and PSKs follow each other one by one: set {} to rotate, "
                                   "or {} to leave it",
                                   kField, *wanted, psk.number, next, psk.number)};
  }
  return {.start = true, .refusal = {}};
}

bool may_finish(const PskFacts& psk, const std::vector<MemberPskUse>& members) {
  return psk.rotating && count(members, PskUse::waiting) == 0;
}

api::PskRotationStatus rotation_status(const PskFacts& psk, const std::vector<MemberPskUse>& members) {
  api::PskRotationStatus out;
  out.number = psk.number;
  out.members_total = static_cast<std::int64_t>(members.size());
  if (!psk.rotating) {
    out.members_ready = out.members_total;
    return out;
  }
  out.phase = api::PskPhase::rotating;
  out.started_at = psk.drawn_at;
  out.members_ready = static_cast<std::int64_t>(count(members, PskUse::ready));
  for (const MemberPskUse& member : members) {
    if (member.use == PskUse::waiting) out.waiting_for.push_back(member.cluster_id);
  }
  return out;
}

Step rotation_step(const PskFacts& psk, const RotationDecision& decision, const std::vector<MemberPskUse>& members) {
  const std::string type(kPskRotated);
  const std::string state =
      psk.rotating ? progress(psk, members) : fmt::format("PSK {} is the only valid one", psk.number);
  if (!decision.refusal.empty()) {
    return {type, StepState::stalled, "NumberRefused", fmt::format("{}; {}", decision.refusal, state)};
  }
  if (psk.rotating) return {type, StepState::working, "Rotating", state};
  return {type, StepState::done, "Done", state};
}

bool adopts(const crypto::PskBundle& held, const crypto::PskBundle& info, bool same_broker) {
  if (info.number != held.number) return info.number > held.number || !same_broker;
  // The same number with another PSK is of a broker that was made anew.
  if (!info.psk.equals(held.psk)) return true;
  return held.previous && !info.previous;
}

}  // namespace fabric::operators
