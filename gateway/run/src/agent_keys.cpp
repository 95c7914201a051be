#include <fabric/api/names.hpp>
#include <fabric/gateway/agent.hpp>
#include <fabric/telemetry/log.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fabric::gateway {

namespace names = api::names;

namespace {

constexpr auto kRekeysMetric = "fabric_rekeys_total";
constexpr auto kRekeysHelp = "Generations of keys that were drawn, by reason.";

std::vector<std::string> texts_of(const std::vector<crypto::PskId>& ids) {
  std::vector<std::string> texts;
  for (const auto& id : ids)
    texts.push_back(id.to_string());
  return texts;
}

const std::string* rekey_command(const api::Gateway* gateway) {
  return gateway == nullptr ? nullptr : gateway->metadata.annotation(names::kRekeyAnnotation);
}

}  // namespace

void Agent::prepare_keys() {
  // Own writes of status come back too; only another command is worth a pass.
  own_gateway_.store().on_change([this](const kube::ObjectKey&, const auto* before, const auto* now) {
    const auto* old_command = before == nullptr ? nullptr : rekey_command(&*before);
    const auto* command = now == nullptr ? nullptr : rekey_command(&*now);
    if (command != nullptr && (old_command == nullptr || *old_command != *command)) wake_.notify();
  });
  for (const auto reason : kAllDrawReasons)
    env_.runtime.metrics.counter(kRekeysMetric, kRekeysHelp, {{"reason", std::string(to_string(reason))}});
}

void Agent::read_psks() {
  auto version = psk_folder_.version();
  if (version == psk_version_ || !reading_psks_.due(env_.runtime.clock.steady())) return;
  auto psks = psk_folder_.read();
  note(reading_psks_, psks ? Result<void>() : std::unexpected(psks.error()));
  // Ready in any case: tunnels go on with the PSKs that were read before.
  env_.health.set("psk", true, reading_psks_.failure());
  if (!psks) return;
  psk_version_ = std::move(version);
  if (psks->ids() == credentials_.psks.ids()) return;
  // In place: key ring and membership refer to it.
  credentials_.psks = *std::move(psks);
  membership_.psks_changed();
  if (ring_) ring_->psks_changed();
  log::info("other PSKs", {{"ids", fmt::format("{}", fmt::join(texts_of(credentials_.psks.ids()), " "))}});
}

void Agent::read_command(TimePoint now) {
  if (!own_gateway_.store().synced()) return;
  const auto gateway = own_gateway_.store().find({options_.ns, options_.node});
  const auto* command = rekey_command(gateway.get());
  // What stands there at the start is served by the generation that a start draws.
  const bool at_start = !std::exchange(commands_known_, true);
  if (command == nullptr || command->empty() || !commands_.insert(*command).second || at_start) return;
  log::info("new keys are asked for", {{"annotation", names::kRekeyAnnotation}});
  rotation_requested_ = now;
}

Result<void> Agent::draw(const DrawGeneration& action, TimePoint now) {
  log::info("new generation of keys", {{"reason", to_string(action.reason)}});
  FABRIC_CHECK(ring_->draw(now, options_.limits.hard_lifetime, action));
  env_.runtime.metrics.counter(kRekeysMetric, kRekeysHelp, {{"reason", std::string(to_string(action.reason))}}).add();
  if (action.reason != DrawReason::first) ++rekeys_;
  return {};
}

api::GatewayKeys Agent::keys_status() const {
  api::GatewayKeys keys{.instance = crypto::to_hex(ring_->instance()),
                        .generations = {},
                        .rekeys = static_cast<std::int64_t>(rekeys_),
                        .rejected = {}};
  for (const MyGeneration& mine : ring_->mine()) {
    keys.generations.push_back({.generation = fmt::format("{}", mine.generation.value()),
                                .drawn_at = mine.drawn,
                                .reason = std::string(to_string(mine.reason)),
                                .psk_ids = texts_of(mine.psks)});
  }
  for (const Rejected& rejected : membership_.rejected()) {
    keys.rejected.push_back({.endpoint = rejected.endpoint,
                             .reason = std::string(to_string(rejected.reason)),
                             .count = static_cast<std::int64_t>(rejected.count)});
  }
  return keys;
}

void Agent::set_key_metrics(TimePoint now) {
  auto& metrics = env_.runtime.metrics;
  const auto mine = ring_->mine();
  if (!mine.empty()) {
    metrics.gauge("fabric_key_generation_age_seconds", "Age of the newest generation of keys.")
        .set(std::chrono::duration<double>(now - mine.back().drawn).count());
  }
  if (!env_.xfrm_stat) return;
  const auto counters = env_.xfrm_stat();
  if (!counters) return;
  for (const auto& [name, value] : *counters) {
    metrics
        .gauge("fabric_xfrm_errors", "Packets that IPsec of this node's kernel dropped, by its own names.",
               {{"name", name}})
        .set(static_cast<double>(value));
  }
}

void Agent::encapsulation(std::string failure) {
  encap_failure_ = std::move(failure);
  // Ready in any case: ESP without UDP goes on.
  env_.health.set("encapsulation", true, encap_failure_);
  wake_.notify();
}

}  // namespace fabric::gateway
