#include <fabric/crypto/pair.hpp>
#include <fabric/crypto/record.hpp>

#include <benchmark/benchmark.h>

/// What a peer costs in keys, beside the primitives that it is made of.
namespace fabric::bench {
namespace {

/// A gateway with a drawn key pair and signed records.
struct Gateway {
  Gateway(std::string cluster, std::uint64_t seed) : entropy(seed), id{std::move(cluster), "node-1"} {
    identity = crypto::Ed25519KeyPair::draw(entropy).value();
    pair = crypto::X25519KeyPair::draw(entropy).value();
    psks.add(crypto::Psk::make(1, Secret::from_text(std::string(48, 'k'))).value()).value();
    crypto::KeyRecord record;
    record.cluster_set = crypto::kDefaultClusterSet;
    record.owner = id;
    record.instance = crypto::draw_instance(entropy).value();
    record.generation = crypto::Generation((std::uint64_t{1'700'000'000'000} << 16U) + 1);
    record.public_key = pair.public_key;
    entropy.fill(record.nonce).value();
    record.suites = {1, 2};
    record.not_after = TimePoint(std::chrono::hours(24 * 365 * 60));
    key = crypto::sign(std::move(record), psks, identity).value();
  }

  crypto::Expected expected() const {
    return {.cluster_set = crypto::kDefaultClusterSet,
            .owner = &id,
            .identity = &identity.public_key,
            .now = TimePoint(std::chrono::hours(24 * 365 * 54))};
  }

  crypto::DeterministicEntropy entropy;
  crypto::GatewayId id;
  crypto::Ed25519KeyPair identity;
  crypto::X25519KeyPair pair;
  crypto::PskSet psks;
  crypto::AnnouncedKey key;
};

const Gateway& mine() {
  static const Gateway gateway("a", 1);
  return gateway;
}

const Gateway& peer() {
  static const Gateway gateway("b", 2);
  return gateway;
}

void x25519_alone(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(crypto::x25519(mine().pair.private_key, peer().pair.public_key));
  state.SetItemsProcessed(state.iterations());
}

void derive_pair(benchmark::State& state) {
  for (auto _ : state) {
    const auto pair = crypto::Pair::derive(mine().pair, mine().key, peer().key, mine().psks);
    if (!pair) return state.SkipWithError(pair.error().message().c_str());
    benchmark::DoNotOptimize(pair->inbound());
    benchmark::DoNotOptimize(pair->outbound());
  }
  state.SetItemsProcessed(state.iterations());
}

void ed25519_verify_alone(benchmark::State& state) {
  const crypto::Signature signature = crypto::ed25519_sign(peer().identity, peer().key.bytes);
  for (auto _ : state) {
    if (!crypto::ed25519_verify(peer().identity.public_key, peer().key.bytes, signature))
      return state.SkipWithError("refused");
  }
  state.SetItemsProcessed(state.iterations());
}

void verify_key_record(benchmark::State& state) {
  for (auto _ : state) {
    const auto checked = crypto::verify_key_record(peer().key.bytes, mine().psks, peer().expected());
    if (!checked) return state.SkipWithError(std::string(to_string(checked.error())).c_str());
  }
  state.SetItemsProcessed(state.iterations());
}

/// A record that somebody without the PSK made up: what flooding the broker costs a reader.
void refuse_key_record(benchmark::State& state) {
  auto forged = peer().key.bytes;
  forged[forged.size() / 2] ^= 1U;
  for (auto _ : state) {
    if (crypto::verify_key_record(forged, mine().psks, peer().expected())) return state.SkipWithError("accepted");
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(x25519_alone)->Unit(benchmark::kMicrosecond);
BENCHMARK(derive_pair)->Unit(benchmark::kMicrosecond);
BENCHMARK(ed25519_verify_alone)->Unit(benchmark::kMicrosecond);
BENCHMARK(verify_key_record)->Unit(benchmark::kMicrosecond);
BENCHMARK(refuse_key_record)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace fabric::bench
