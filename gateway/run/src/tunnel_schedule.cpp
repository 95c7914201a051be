#include <fabric/async/backoff.hpp>
#include <fabric/gateway/tunnel_schedule.hpp>

#include <algorithm>

namespace fabric::gateway {

namespace {

/// The tunnel's round trip and a pass of the receiver fit in the first pause; a peer that never answers (it is gone, or
/// its software knows no receipts) costs one datagram in a minute.
constexpr async::Backoff kPauses{.initial = Duration{1'000}, .max = Duration{60'000}};

bool same_message(const TunnelTarget& a, const TunnelTarget& b) {
  return a.instance == b.instance && a.wording == b.wording && a.seen == b.seen;
}

}  // namespace

void TunnelSchedule::set_targets(const std::map<crypto::GatewayId, TunnelTarget>& targets, async::SteadyTime now) {
  std::erase_if(entries_, [&](const auto& entry) { return !targets.contains(entry.first); });
  for (const auto& [peer, target] : targets) {
    const auto [it, fresh] = entries_.try_emplace(peer);
    auto& entry = it->second;
    const bool moved = entry.target.address != target.address;
    if (fresh || !same_message(entry.target, target)) {
      entry = {.target = target, .since = target.counter, .due = now};
      continue;
    }
    entry.target = target;
    // What did not arrive at the old address may do so at the new one.
    if (moved && !entry.confirmed) entry.due = now;
  }
}

std::vector<crypto::GatewayId> TunnelSchedule::take_due(async::SteadyTime now, std::size_t limit, double random) {
  std::vector<std::pair<async::SteadyTime, crypto::GatewayId>> waiting;
  for (const auto& [peer, entry] : entries_) {
    if (!entry.confirmed && entry.due <= now) waiting.emplace_back(entry.due, peer);
  }
  std::ranges::sort(waiting);
  if (waiting.size() > limit) waiting.resize(limit);
  std::vector<crypto::GatewayId> result;
  for (auto& [due, peer] : waiting) {
    auto& entry = entries_.at(peer);
    entry.due = now + kPauses.delay(entry.sent++, random);
    result.push_back(std::move(peer));
  }
  return result;
}

void TunnelSchedule::note(const Receipt& receipt) {
  const auto found = entries_.find(receipt.from);
  if (found == entries_.end()) return;
  auto& entry = found->second;
  if (entry.target.instance == receipt.instance && entry.since <= receipt.counter) entry.confirmed = true;
}

const TunnelTarget* TunnelSchedule::target(const crypto::GatewayId& peer) const {
  const auto found = entries_.find(peer);
  return found == entries_.end() ? nullptr : &found->second.target;
}

std::optional<async::SteadyTime> TunnelSchedule::next() const {
  std::optional<async::SteadyTime> result;
  for (const auto& [peer, entry] : entries_) {
    if (!entry.confirmed) result = std::min(result.value_or(entry.due), entry.due);
  }
  return result;
}

std::size_t TunnelSchedule::unconfirmed() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(entries_, [](const auto& entry) { return !entry.second.confirmed; }));
}

bool TokenBucket::take(async::SteadyTime now) {
  if (last_) {
    const std::chrono::duration<double> since = now - *last_;
    tokens_ = std::min(burst_, tokens_ + since.count() * per_second_);
  }
  last_ = now;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

}  // namespace fabric::gateway
