#include <fabric/api/names.hpp>
#include <fabric/gateway/agent.hpp>
#include <fabric/telemetry/log.hpp>

#include <algorithm>

namespace fabric::gateway {

namespace names = api::names;
using async::Task;

namespace {

/// Round trips are shown this old at most.
constexpr Duration kLatencyRefresh{60'000};

}  // namespace

void Agent::set_ping_targets() {
  health_targets_.clear();
  if (options_.health_check) {
    for (const auto& [id, peer] : membership_.peers()) {
      const auto& addresses = peer.state.record.health_check;
      const auto usable = std::ranges::find_if(addresses, [&](const net::IpAddress& address) {
        return std::ranges::any_of(situation_.health_check,
                                   [&](const net::IpAddress& own) { return own.family() == address.family(); });
      });
      if (usable != addresses.end()) health_targets_.emplace(id, *usable);
    }
  }
  if (pinger_) pinger_->set_targets(health_targets_);
}

Task<void> Agent::report() {
  const TimePoint now = env_.runtime.clock.now();
  StatusInputs inputs{.options = &options_,
                      .membership = &membership_,
                      .pinger = pinger_.get(),
                      .sas = &sas_,
                      .peers = peers_,
                      .health_targets = health_targets_,
                      .failure = cannot_carry_,
                      .broker_failure = publishing_.failure(),
                      .psk_failure = reading_psks_.failure(),
                      .encap_failure = encap_failure_};
  if (ring_) {
    inputs.keys = keys_status();
    set_key_metrics(now);
  }
  if (const auto* endpoint = announcer_->endpoint()) inputs.local = endpoint->spec;
  api::Gateway gateway = gateway_object(inputs);
  set_metrics(env_.runtime.metrics, options_, gateway, traffic_, shown_);
  const bool old_latency = !latency_written_ || now - *latency_written_ >= kLatencyRefresh;
  const bool same = written_ && without_figures(*written_) == without_figures(gateway);
  if (same && (!old_latency || *written_ == gateway)) co_return;
  if (!reporting_.due(env_.runtime.clock.steady())) co_return;
  const auto done = co_await write_gateway(gateway);
  note(reporting_, done);
  if (!done) co_return;
  written_ = std::move(gateway);
  latency_written_ = now;
}

Task<Result<void>> Agent::write_gateway(api::Gateway gateway) {
  kube::ApplyOptions options{.field_manager = std::string(names::kGatewayManager), .force = true};
  const auto written = co_await env_.local.apply(std::move(gateway), std::move(options));
  if (!written) co_return Result<void>(std::unexpected(written.error())).with("writing the Gateway object");
  co_return Result<void>();
}

void Agent::note_findings(const std::vector<Finding>& findings) {
  std::set<Finding> now(findings.begin(), findings.end());
  for (const Finding& finding : now) {
    if (!findings_.contains(finding)) {
      log::warn("finding",
                {{"kind", to_string(finding.kind)}, {"subject", finding.subject}, {"message", finding.message}});
    }
  }
  for (const Finding& finding : findings_) {
    if (!now.contains(finding))
      log::info("finding is gone", {{"kind", to_string(finding.kind)}, {"subject", finding.subject}});
  }
  findings_ = std::move(now);
}

}  // namespace fabric::gateway
