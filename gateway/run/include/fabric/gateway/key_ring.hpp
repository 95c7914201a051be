#pragma once

#include <fabric/crypto/record.hpp>
#include <fabric/gateway/announcements.hpp>
#include <fabric/gateway/sa_plan.hpp>

#include <map>
#include <vector>

namespace fabric::gateway {

/// The kernel's side of a suite.
netstate::Aead aead_of(crypto::Suite suite);

/// The private halves of this process and what is derived with them. Lives in memory only: a restarted process draws
/// new ones. The arguments of the constructor outlive it. Belongs to one thread.
class KeyRing {
 public:
  /// `floor`: a generation that this gateway published before, in an earlier life; new ones are above it. `suites`: in
  /// order of preference, of which the first that both ends list is taken.
  static Result<KeyRing> open(crypto::GatewayId self, crypto::Entropy& entropy, const crypto::PskSet& psks,
                              const crypto::Ed25519KeyPair& identity, TimePoint now, crypto::Generation floor,
                              std::vector<crypto::Suite> suites = {crypto::Suite::aes_gcm_256,
                                                                   crypto::Suite::chacha20_poly1305});

  /// Draws a key pair with the next generation number. `lifetime`: after it nobody accepts the record any more.
  Result<void> draw(TimePoint now, Duration lifetime, const DrawGeneration& why = {});
  /// Wipes a private half and what was derived with it.
  void drop(crypto::Generation generation);

  /// The PSKs are others now: what could not be derived is tried again. What was derived stays.
  void psks_changed();

  const crypto::GatewayId& self() const { return self_; }

  const crypto::InstanceId& instance() const { return instance_; }

  std::vector<MyGeneration> mine() const;
  /// Records of these generations, ascending.
  std::vector<crypto::AnnouncedKey> records(const std::vector<crypto::Generation>& generations) const;
  /// Fills in who and when (owner, instance, counter) and signs.
  Result<crypto::AnnouncedState> sign_state(crypto::StateRecord record);

  /// Derives with the records of these peers, which outlive the function.
  DerivePair derive_with(const Peers& peers);

 private:
  struct Held {
    MyGeneration meta;
    crypto::X25519KeyPair key;
    crypto::AnnouncedKey record;
  };

  KeyRing(crypto::GatewayId self, crypto::Entropy& entropy, const crypto::PskSet& psks,
          const crypto::Ed25519KeyPair& identity, crypto::InstanceId instance, std::uint64_t next,
          std::vector<crypto::Suite> suites)
      : self_(std::move(self)),
        entropy_(&entropy),
        psks_(&psks),
        identity_(&identity),
        instance_(instance),
        next_generation_(next),
        next_counter_(next),
        suites_(std::move(suites)) {}

  Result<PairSas> derive(const PairId& id, const Peers& peers);

  crypto::GatewayId self_;
  crypto::Entropy* entropy_;
  const crypto::PskSet* psks_;
  const crypto::Ed25519KeyPair* identity_;
  crypto::InstanceId instance_;
  std::uint64_t next_generation_;
  std::uint64_t next_counter_;
  std::vector<crypto::Suite> suites_;
  std::map<crypto::Generation, Held> held_;
  std::map<PairId, Result<PairSas>> derived_;  ///< Also what cannot be derived.
};

/// The highest generation in an Endpoint's own records, without any proof of origin: our own API server's word for what
/// we published before. Zero when there is none.
crypto::Generation last_published(const std::map<std::string, std::string>& backend_config);

}  // namespace fabric::gateway
