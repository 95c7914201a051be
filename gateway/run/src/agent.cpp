#include <fabric/api/core.hpp>
#include <fabric/api/names.hpp>
#include <fabric/async/backoff.hpp>
#include <fabric/gateway/agent.hpp>
#include <fabric/gateway/reqid.hpp>
#include <fabric/gateway/syncer.hpp>
#include <fabric/netstate/diff.hpp>
#include <fabric/telemetry/log.hpp>

#include <algorithm>
#include <functional>

namespace fabric::gateway {

namespace names = api::names;
using async::Task;

namespace {

/// How often SA counters are looked at: what they show is the proof that a peer is ready. Nothing leaves the node for
/// it.
constexpr Duration kEvidenceInterval{1'000};
/// The broker may be away at a start; what the local copies say is enough to go on with.
constexpr Duration kBrokerGrace{5'000};
/// A burst of changes is planned once.
constexpr Duration kSettle{10};
/// What was written at the broker comes back by the watch within this time; another content after it is not ours.
constexpr Duration kReadBack{10'000};
/// Reads of the kernel that fail in a row before this node counts as unable to carry: what is installed goes on
/// working.
constexpr unsigned kUnreadable = 5;
/// Addresses of this node in the pod network that are announced; a state record holds no more.
constexpr std::size_t kMaxProbes = 16;
/// Drawing a generation changes the plan; more than two in one run is a bug.
constexpr int kMaxDraws = 3;

kube::Selection in(const std::string& ns) {
  return {.ns = ns};
}

/// The broker has few clients, and while a tunnel is down its records are the only way to new keys.
controller::Runtime towards_broker(controller::Runtime runtime) {
  runtime.max_wait = Duration{10'000};
  return runtime;
}

/// Without a broker its informers never run.
kube::Client& broker_or_local(const Environment& env) {
  return env.broker == nullptr ? env.local : *env.broker;
}

/// Retrying does not help: the kernel or the container lacks it.
bool is_lasting(const Error& error) {
  return error.code == Errc::unsupported || error.code == Errc::forbidden;
}

template <class T>
bool add_unique(std::vector<T>& to, const T& value) {
  if (std::ranges::find(to, value) != to.end()) return false;
  to.push_back(value);
  return true;
}

/// This node's own addresses within these prefixes.
std::vector<net::IpAddress> addresses_within(const netstate::HostFacts& facts, const std::vector<net::Cidr>& prefixes) {
  std::vector<net::IpAddress> result;
  for (const auto& interface : facts.interfaces) {
    for (const auto& a : interface.addresses) {
      if (result.size() == kMaxProbes) return result;
      if (std::ranges::any_of(prefixes, [&](const net::Cidr& c) { return c.contains(a.address); }))
        add_unique(result, a.address);
    }
  }
  return result;
}

}  // namespace

Agent::Agent(Options options, Credentials credentials, Environment environment)
    : options_(std::move(options)),
      credentials_(std::move(credentials)),
      env_(std::move(environment)),
      wake_(env_.runtime.executor),
      for_broker_(env_.runtime.executor),
      for_objects_(env_.runtime.executor),
      own_node_(env_.local, {.field_selector = "metadata.name=" + options_.node}, env_.runtime),
      own_gateway_(env_.local, {.ns = options_.ns, .field_selector = "metadata.name=" + options_.node}, env_.runtime),
      endpoints_(env_.local, in(options_.ns), env_.runtime),
      clusters_(env_.local, in(options_.ns), env_.runtime),
      broker_endpoints_(
          "broker endpoints",
          std::make_unique<controller::KubeListWatch>(broker_or_local(env_), kube::resource_of<api::Endpoint>(),
                                                      in(credentials_.broker_namespace)),
          towards_broker(env_.runtime)),
      broker_clusters_("broker clusters",
                       std::make_unique<controller::KubeListWatch>(
                           broker_or_local(env_), kube::resource_of<api::Cluster>(), in(credentials_.broker_namespace)),
                       towards_broker(env_.runtime)),
      membership_(options_.cluster_id, credentials_.psks, env_.runtime.metrics),
      psk_folder_(std::filesystem::path(options_.secrets) / kPskSubfolder) {
  env_.health.set("stores", false, "waiting for the API server");
  env_.health.set("kernel", false, "nothing applied yet");
  const auto wake = [this](const kube::ObjectKey&, const auto*, const auto*) { wake_.notify(); };
  own_node_.store().on_change(wake);
  endpoints_.store().on_change(wake);
  clusters_.store().on_change(wake);
  broker_endpoints_.store().on_change(wake);
  broker_clusters_.store().on_change(wake);
  prepare_keys();
}

Result<void> Agent::start(async::TaskGroup& group) {
  if (env_.broker == nullptr && !options_.uninstall) return fail(Errc::invalid, "there is no broker to work with");
  group.spawn("own node", own_node_.run());
  group.spawn("endpoints", endpoints_.run());
  group.spawn("clusters", clusters_.run());
  if (options_.uninstall) {
    group.spawn("uninstall", uninstall());
    return {};
  }
  if (options_.health_check) {
    const PingerOptions pings{.interval = options_.health_check_interval, .max_loss = options_.health_check_max_loss};
    FABRIC_TRY(pinger_, Pinger::open(env_.runtime.executor, env_.runtime.clock, pings, [this] { wake_.notify(); }));
    pinger_->start(group);
  }
  FABRIC_TRY(elector_, controller::LeaseElector::open(env_.local, {options_.ns, std::string(names::kGatewaySyncLease)},
                                                      {.identity = options_.node}, env_.runtime));
  elector_->on_change([this](bool) { wake_.notify(); });
  group.spawn("own gateway", own_gateway_.run());
  group.spawn("broker endpoints", broker_endpoints_.run());
  group.spawn("broker clusters", broker_clusters_.run());
  group.spawn("sync lease", elector_->run());
  group.spawn("reconcile", run());
  group.spawn("publications", keep_broker_told());
  group.spawn("objects", keep_objects_written());
  return {};
}

Task<Result<void>> Agent::wait_synced() {
  FABRIC_CO_CHECK(co_await own_node_.store().wait_synced());
  FABRIC_CO_CHECK(co_await endpoints_.store().wait_synced());
  FABRIC_CO_CHECK(co_await clusters_.store().wait_synced());
  const auto limit = env_.runtime.clock.steady() + kBrokerGrace;
  FABRIC_CO_TRY(const bool endpoints, co_await broker_endpoints_.store().wait_synced_until(env_.runtime.clock, limit));
  FABRIC_CO_TRY(const bool clusters, co_await broker_clusters_.store().wait_synced_until(env_.runtime.clock, limit));
  if (!endpoints || !clusters) log::warn("the broker does not answer; going on with the local copies of its records");
  env_.health.set("stores", true);
  co_return Result<void>();
}

Result<void> Agent::open_ring() {
  crypto::Generation floor;
  for (const auto& store : {endpoints_.store().snapshot(), broker_endpoints_.store().snapshot()}) {
    for (const auto& [key, endpoint] : *store) {
      if (endpoint->spec.cluster_id != options_.cluster_id || endpoint->spec.hostname != options_.node) continue;
      floor =
          std::max(floor, last_published({endpoint->spec.backend_config.begin(), endpoint->spec.backend_config.end()}));
    }
  }
  FABRIC_TRY(auto ring, KeyRing::open({options_.cluster_id, options_.node}, env_.entropy, credentials_.psks,
                                      credentials_.identity, env_.runtime.clock.now(), floor, options_.cipher_suites));
  ring_ = std::make_unique<KeyRing>(std::move(ring));
  announcer_ =
      std::make_unique<Announcer>(options_, *ring_, env_.local, broker_or_local(env_), credentials_.broker_namespace);
  if (env_.tunnel != nullptr) {
    tunnel_ = std::make_unique<TunnelRecords>(ring_->self(), ring_->instance(), credentials_.psks, membership_,
                                              *env_.tunnel, env_.runtime, [this] { wake_.notify(); });
  }
  log::info("new instance", {{"instance", crypto::to_hex(ring_->instance())}});
  return {};
}

Task<Result<void>> Agent::run() {
  FABRIC_CO_CHECK(co_await wait_synced());
  FABRIC_CO_CHECK(open_ring());
  const async::Backoff backoff{.initial = Duration{200}, .max = Duration{10'000}};
  while (true) {
    FABRIC_CO_CHECK(still_one_term());
    const auto done = co_await reconcile();
    if (co_await async::cancelled()) co_return Result<void>();
    if (done) {
      if (failures_ > 0) log::info("everything is as planned again");
      failures_ = 0;
      env_.health.set("kernel", true);
    } else {
      if (failures_++ == 0) log::warn("not everything is as planned", {{"error", done.error().message()}});
      env_.health.set("kernel", false, done.error().message());
    }
    const Duration wait =
        failures_ == 0 ? pause(env_.runtime.clock.now()) : backoff.delay(failures_ - 1, env_.runtime.random());
    const auto woken = co_await wake_.wait_for(env_.runtime.clock, wait);
    if (!woken) co_return Result<void>();
    if (*woken && !co_await async::sleep_for(env_.runtime.clock, kSettle)) co_return Result<void>();
  }
}

Result<void> Agent::still_one_term() const {
  const auto node = own_node_.store().find({"", options_.node});
  if (!left_ || node == nullptr || !api::is_gateway(*node)) return {};
  return fail(Errc::unavailable, "node '{}' is a gateway again; ending, to come back with keys that nobody has seen",
              options_.node);
}

Duration Agent::pause(TimePoint now) const {
  Duration wait = next_wake_ ? *next_wake_ - now : kEvidenceInterval;
  if (const auto next = tunnel_ ? tunnel_->next() : std::nullopt)
    wait = std::min(wait, std::chrono::ceil<Duration>(*next - env_.runtime.clock.steady()));
  return std::clamp(wait, Duration{kSettle}, kEvidenceInterval);
}

Task<Result<void>> Agent::reconcile() {
  const TimePoint now = env_.runtime.clock.now();
  read_psks();
  read_command(now);
  read_members(now);
  const auto done = co_await plan_with_kernel(now);
  for_broker_.notify();
  for_objects_.notify();
  co_return done;
}

Task<Result<void>> Agent::plan_with_kernel(TimePoint now) {
  const auto facts = co_await env_.kernel.facts({});
  if (!facts) co_return cannot_read(facts.error());
  auto observed = co_await env_.kernel.observe(netstate::kGatewaySlices);
  if (!observed) co_return cannot_read(observed.error());
  auto here = situation(*facts);
  if (!here) {
    cannot_carry_ = here.error().message();
    co_return std::unexpected(std::move(here).error());
  }
  situation_ = *here;
  left_ = left_ || situation_.leaving;
  const auto done = co_await plan_and_apply(*std::move(observed), *std::move(here), now);
  // One refused object leaves the others in place: the gateway is out of service when it sends to nobody, for good.
  const bool out_of_service = !done && is_lasting(done.error()) && !sends();
  cannot_carry_ = out_of_service ? done.error().message() : std::string();
  co_return done;
}

Result<void> Agent::cannot_read(const Error& error) {
  if (is_lasting(error) || failures_ >= kUnreadable) cannot_carry_ = error.message();
  return std::unexpected(error);
}

bool Agent::sends() const {
  return std::ranges::any_of(sas_.peers, [](const auto& entry) { return entry.second.outbound; });
}

void Agent::read_members(TimePoint now) {
  membership_.read_clusters(clusters_.store());
  membership_.read_clusters(broker_clusters_.store());
  membership_.read_endpoints(endpoints_.store(), now, Standing::copies);
  membership_.read_endpoints(broker_endpoints_.store(), now);
  // Local copies follow the broker, so that while the broker's store is not known, or lost us as well, absence proves
  // nothing.
  if (broker_endpoints_.store().synced() && at_broker() != nullptr) {
    membership_.note_absent({&broker_endpoints_.store()}, now, options_.limits.hard_lifetime);
    membership_.renew_pins(broker_clusters_.store());
  }
}

std::shared_ptr<const api::Endpoint> Agent::at_broker() const {
  if (announcer_ == nullptr || announcer_->endpoint() == nullptr) return nullptr;
  return broker_endpoints_.store().find({credentials_.broker_namespace, announcer_->endpoint()->metadata.name});
}

Result<Situation> Agent::situation(const netstate::HostFacts& facts) const {
  const auto node = own_node_.store().find({"", options_.node});
  if (!node) return fail(Errc::unavailable, "there is no Node '{}'", options_.node);
  const auto cluster = clusters_.store().find({options_.ns, options_.cluster_id});
  if (!cluster)
    return fail(Errc::unavailable, "there is no Cluster {}/{} yet; the operator makes it", options_.ns,
                options_.cluster_id);
  Situation result;
  // The pod goes with the label: peers hear of it before.
  result.leaving = left_ || !api::is_gateway(*node);
  // IPv4 first: it is the family that every underlay has.
  const auto internal = api::addresses(*node, "InternalIP");
  std::ranges::copy_if(internal, std::back_inserter(result.private_addresses), &net::IpAddress::is_v4);
  std::ranges::copy_if(internal, std::back_inserter(result.private_addresses), std::not_fn(&net::IpAddress::is_v4));
  if (const auto elastic = options_.elastic_ips.find(options_.node); elastic != options_.elastic_ips.end()) {
    result.public_addresses.push_back(elastic->second);
  } else if (const auto* text = node->metadata.annotation(names::kNodePublicIp)) {
    if (const auto address = net::IpAddress::parse(*text)) result.public_addresses.push_back(*address);
  }
  for (const std::string& text : cluster->spec.service_cidr) {
    FABRIC_TRY(const auto prefix, net::Cidr::parse(text).with("Cluster " + options_.cluster_id + " spec.service_cidr"));
    add_unique(result.service_prefixes, prefix);
  }
  for (const std::string& text : cluster->spec.cluster_cidr) {
    FABRIC_TRY(const auto prefix, net::Cidr::parse(text).with("Cluster " + options_.cluster_id + " spec.cluster_cidr"));
    add_unique(result.pod_prefixes, prefix);
  }
  const bool public_elsewhere = std::ranges::any_of(result.public_addresses, [&](const auto& address) {
    return std::ranges::find(result.private_addresses, address) == result.private_addresses.end();
  });
  result.nat = options_.force_udp_encaps || (options_.nat_traversal && public_elsewhere);
  result.health_check = addresses_within(facts, api::pod_cidrs(*node));
  // Not every network plugin takes its addresses from the Node's podCIDRs.
  if (result.health_check.empty()) result.health_check = addresses_within(facts, result.pod_prefixes);
  return result;
}

std::map<crypto::GatewayId, PeerKeys> Agent::peer_keys(const LocalEnd& local) const {
  std::map<crypto::GatewayId, PeerKeys> result;
  const auto reqids = assign_reqids(membership_.clusters());
  const crypto::GatewayId self{options_.cluster_id, options_.node};
  for (const auto& [id, peer] : membership_.peers()) {
    PeerKeys keys{.reqid = reqids.at(id.cluster),
                  .path = choose_path(local, peer.state.record),
                  .leaving = peer.state.record.leaving};
    for (const auto& key : peer.keys) {
      keys.instance = key.record.instance;
      keys.generations.push_back(key.record.generation);
    }
    for (const auto& seen : peer.state.record.seen) {
      if (seen.peer == self && seen.instance == ring_->instance()) keys.seen_mine.insert(seen.generation);
    }
    result.emplace(id, std::move(keys));
  }
  return result;
}

SaPlan Agent::plan_sas_now(const std::map<netstate::SaKey, ObservedSa>& observed, TimePoint now) {
  SaInputs inputs{.self = ring_->self(),
                  .mine = ring_->mine(),
                  .peers = peers_,
                  .observed = observed,
                  .published = announcer_->published(),
                  .tunnel_only = announcer_->tunnel_only(),
                  .psks = credentials_.psks.ids(),
                  .rotation_requested = rotation_requested_,
                  .now = now,
                  .limits = options_.limits};
  return plan_sas(inputs, memory_, ring_->derive_with(membership_.peers()));
}

PolicyPlan Agent::plan_policies_now(const netstate::State& observed, const Situation& situation,
                                    const SaPlan& sas) const {
  PolicyInputs inputs{.local_cluster = options_.cluster_id,
                      .local_prefixes = situation.service_prefixes,
                      .local_probes = situation.health_check,
                      .holders = holders_of(observed.policies)};
  std::ranges::copy(situation.pod_prefixes, std::back_inserter(inputs.local_prefixes));
  for (const auto& [id, peer] : peers_) {
    auto& cluster = inputs.remotes[id.cluster];
    cluster.reqid = peer.reqid;
    const auto sa = sas.peers.find(id);
    const auto* monitor = pinger_ == nullptr ? nullptr : pinger_->monitor(id);
    const auto& record = membership_.peers().at(id).state.record;
    cluster.gateways.push_back({.name = id.gateway,
                                .path = peer.path,
                                .health = monitor == nullptr ? Health::unknown : monitor->health(),
                                .outbound = sa != sas.peers.end() && sa->second.outbound,
                                .prefixes = record.prefixes,
                                .probes = record.health_check});
  }
  return plan_policies(inputs);
}

Task<Result<void>> Agent::plan_and_apply(netstate::State observed, Situation situation, TimePoint now) {
  peers_ = peer_keys({.addresses = situation.private_addresses, .nat = situation.nat, .natt_port = options_.natt_port});
  set_ping_targets();
  const auto tracked = tracker_.track(observed.sas, now);
  traffic_.count(memory_, observed.sas);
  SaPlan sas = plan_sas_now(tracked, now);
  const auto wants_draw = [](const Action& action) { return std::holds_alternative<DrawGeneration>(action); };
  for (int draws = 0; draws < kMaxDraws; ++draws) {
    const auto draw = std::ranges::find_if(sas.actions, wants_draw);
    if (draw == sas.actions.end()) break;
    // The memory of a plan is kept once its script ran; that of this one never does.
    FABRIC_CO_CHECK(this->draw(std::get<DrawGeneration>(*draw), now));
    sas = plan_sas_now(tracked, now);
  }
  PolicyPlan policies = plan_policies_now(observed, situation, sas);
  netstate::State desired;
  desired.sas = sas.desired;
  desired.policies = std::move(policies.policies);
  auto findings = sas.findings;
  findings.insert(findings.end(), policies.findings.begin(), policies.findings.end());
  note_findings(findings);
  env_.runtime.metrics.gauge("fabric_coarse_policies", "Policies that the kernel keeps in a linear list.")
      .set(static_cast<double>(policies.coarse_policies));
  const auto applied = co_await apply(observed, std::move(desired), sas.memory);
  memory_ = sas.memory;
  next_wake_ = sas.next_wake;
  sas_ = sas;
  carried_ = std::move(policies.carried);
  // Publications say what was observed, so that a refused step does not hold them up.
  carry_out(sas_);
  co_return applied;
}

Task<Result<void>> Agent::apply(const netstate::State& observed, netstate::State desired, SaMemory& memory) {
  const auto script = netstate::diff(observed, desired, netstate::kGatewaySlices);
  if (script.empty()) co_return Result<void>();
  for (const auto& step : script.steps)
    log::info("kernel", {{"step", netstate::describe(step)}});
  const auto report = co_await env_.kernel.apply(script);
  for (std::size_t i = 0; i < script.steps.size(); ++i) {
    const auto& result = report.results.at(i);
    const auto* sa = std::get_if<netstate::SaObject>(&script.steps[i].object);
    if (sa == nullptr || script.steps[i].verb != netstate::Verb::add || result.outcome == kernel::Outcome::done)
      continue;
    note_failed_add(memory, sa->key, result.error && result.error->code == Errc::already_exists);
  }
  // What was installed is read back by the next run, which then publishes. When all failed, the backoff says when.
  if (report.count(kernel::Outcome::done) > 0) wake_.notify();
  if (const Error* error = report.first_error()) co_return std::unexpected(*error);
  co_return Result<void>();
}

void Agent::carry_out(const SaPlan& sas) {
  drop_generations(sas);
  unpublished_ = to_be_published(sas, situation_);
  if (unpublished_) {
    if (const auto worded = announcer_->word(*unpublished_, situation_); !worded) note(publishing_, worded);
  }
  tell_peers();
}

/// What left for one peer counts as published: it may be known from then on.
void Agent::tell_peers() {
  if (!tunnel_ || announcer_->worded() == nullptr) return;
  tunnel_->listen_at(situation_.health_check);
  const auto& said = *announcer_->worded();
  if (tunnel_->tell(said.keys, said.state) && announcer_->note_left()) wake_.notify();
}

void Agent::drop_generations(const SaPlan& sas) {
  for (const Action& action : sas.actions) {
    if (const auto* drop = std::get_if<DropGeneration>(&action)) {
      log::info("generation dropped");
      ring_->drop(drop->generation);
    }
  }
}

std::optional<Publication> Agent::to_be_published(const SaPlan& sas, const Situation& situation) const {
  for (const Action& action : sas.actions) {
    if (const auto* publish = std::get_if<Publish>(&action)) return publish->publication;
  }
  if (!announcer_->published()) return std::nullopt;
  if (!announcer_->says(situation) || announcer_->broker_lags()) return announcer_->published();
  const bool settled = published_at_ + kReadBack <= env_.runtime.clock.steady();
  if (!settled || !broker_endpoints_.store().synced()) return std::nullopt;
  const auto there = at_broker();
  const bool ours = there != nullptr && there->spec.backend_config == announcer_->endpoint()->spec.backend_config;
  return ours ? std::nullopt : announcer_->published();
}

void Agent::note(Retry& retry, const Result<void>& outcome) {
  retry.note(outcome, env_.runtime.clock.steady(), env_.runtime.random());
}

}  // namespace fabric::gateway
