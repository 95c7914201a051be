#include <fabric/crypto/hash.hpp>
#include <fabric/crypto/keys.hpp>
#include <fabric/crypto/psk.hpp>
#include <fabric/crypto/seal.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vectors.hpp"

namespace fabric::crypto {
namespace {

using testing::array_of;
using ::testing::ElementsAreArray;
using testing::from_hex;
using testing::secret_of;
using testing::vector_of;

class BrokenEntropy final : public Entropy {
 public:
  Result<void> fill(std::span<std::uint8_t>) override { return fail(Errc::unavailable, "no entropy"); }
};

TEST(Base64, GoesThereAndBack) {
  struct Row {
    std::string_view name, plain, coded;
  };

  for (const auto& row : {Row{"empty", "", ""}, Row{"one byte", "f", "Zg=="}, Row{"two bytes", "fo", "Zm8="},
                          Row{"three bytes", "foo", "Zm9v"}, Row{"six bytes", "foobar", "Zm9vYmFy"}}) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(to_base64(view_of(row.plain)), row.coded);
    const auto back = from_base64(row.coded);
    ASSERT_TRUE(back);
    EXPECT_THAT(*back, ElementsAreArray(view_of(row.plain)));
  }
}

TEST(Base64, RefusesWhatIsNotCanonical) {
  for (const std::string_view text :
       {"Zg=", "Zg", "Zh==", "Zm9=", "Z===", "====", "Zg==Zg==", "Zm 9", "Zm9v\n", "Zm-_"}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
  EXPECT_FALSE(from_base64("Zm9v", 2));
  EXPECT_TRUE(from_base64("Zm9v", 3));
}

TEST(Hkdf, GivesTheAnswersOfRfc5869) {
  const auto prk = hkdf_extract(from_hex("000102030405060708090a0b0c"), Bytes(22, 0x0b));
  EXPECT_THAT(prk.reveal(),
              ElementsAreArray(from_hex("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5")));
  const auto okm = hkdf_expand(prk, from_hex("f0f1f2f3f4f5f6f7f8f9"), 42);
  EXPECT_THAT(okm.reveal(), ElementsAreArray(from_hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
                                                      "34007208d5b887185865")));
  const auto without_salt = hkdf_extract({}, Bytes(22, 0x0b));
  EXPECT_THAT(without_salt.reveal(),
              ElementsAreArray(from_hex("19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04")));
}

TEST(X25519, BothEndsAgreeAndTheAnswerIsThatOfTheVectors) {
  const auto low = *X25519KeyPair::from_private(secret_of("low.private"));
  const auto high = *X25519KeyPair::from_private(secret_of("high.private"));
  EXPECT_EQ(low.public_key.value(), array_of<32>("low.public"));
  EXPECT_EQ(high.public_key.value(), array_of<32>("high.public"));
  EXPECT_TRUE(x25519(low.private_key, high.public_key)->equals(*x25519(high.private_key, low.public_key)));
}

TEST(X25519, RefusesLowOrderPublicKeys) {
  const auto key = *X25519KeyPair::from_private(secret_of("low.private"));
  for (const std::string_view point : {"0000000000000000000000000000000000000000000000000000000000000000",
                                       "0100000000000000000000000000000000000000000000000000000000000000",
                                       "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
                                       "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
                                       "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"}) {
    std::array<std::uint8_t, 32> raw{};
    std::ranges::copy(from_hex(point), raw.begin());
    const auto shared = x25519(key.private_key, X25519Public(raw));
    ASSERT_FALSE(shared) << point;
    EXPECT_EQ(shared.error().code, Errc::invalid);
  }
}

TEST(X25519, RefusesPrivateKeysOfAnotherSize) {
  EXPECT_FALSE(X25519KeyPair::from_private(Secret(31)));
  EXPECT_FALSE(X25519KeyPair::from_private(Secret(33)));
}

TEST(Ed25519, SignsAsRfc8032Does) {
  const auto key =
      *Ed25519KeyPair::from_seed(Secret(from_hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")));
  EXPECT_THAT(key.public_key.value(),
              ElementsAreArray(from_hex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")));
  const auto signature = ed25519_sign(key, Bytes{0x72});
  EXPECT_THAT(signature,
              ElementsAreArray(from_hex("92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                                        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00")));
  EXPECT_TRUE(ed25519_verify(key.public_key, Bytes{0x72}, signature));
}

TEST(Ed25519, RefusesAnyOtherMessageSignatureOrKey) {
  const auto key = *Ed25519KeyPair::from_seed(secret_of("low.seed"));
  const auto other = *Ed25519KeyPair::from_seed(secret_of("high.seed"));
  const auto signature = ed25519_sign(key, view_of("message"));
  EXPECT_FALSE(ed25519_verify(key.public_key, view_of("massage"), signature));
  EXPECT_FALSE(ed25519_verify(other.public_key, view_of("message"), signature));
  for (std::size_t i = 0; i < signature.size(); ++i) {
    auto changed = signature;
    changed[i] ^= 1;
    EXPECT_FALSE(ed25519_verify(key.public_key, view_of("message"), changed)) << i;
  }
  EXPECT_FALSE(Ed25519KeyPair::from_seed(Secret(31)));
}

TEST(PublicKeys, GoThroughBase64) {
  const X25519Public key(array_of<32>("low.public"));
  EXPECT_EQ(*x25519_public_from_base64(to_base64(key)), key);
  EXPECT_FALSE(x25519_public_from_base64("AAAA"));
  EXPECT_FALSE(ed25519_public_from_base64("not base64"));
}

TEST(Aead, GivesTheAnswerOfTheGcmSpecification) {
  const Secret key(32);
  const auto sealed = aead_seal(key, Bytes(12), {}, Bytes(16));
  EXPECT_THAT(sealed, ElementsAreArray(from_hex("cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919")));
  const auto empty = aead_seal(key, Bytes(12), {}, {});
  EXPECT_THAT(empty, ElementsAreArray(from_hex("530f8afbc74536b9a963b4f1c4cb738b")));
  EXPECT_TRUE(aead_open(key, Bytes(12), {}, empty)->empty());
}

TEST(Seal, GivesTheAnswerOfTheVectors) {
  DeterministicEntropy entropy(42);
  const X25519Public to(array_of<32>("high.public"));
  const auto sealed = seal_to(entropy, to, "fabric/v1 member-token/b", vector_of("seal.plaintext"));
  ASSERT_TRUE(sealed);
  EXPECT_EQ(*sealed, vector_of("seal.to.high"));
}

TEST(Seal, OpensOnlyForTheRecipientTheContextAndTheVeryBytes) {
  const auto high = *X25519KeyPair::from_private(secret_of("high.private"));
  const auto low = *X25519KeyPair::from_private(secret_of("low.private"));
  const auto& sealed = vector_of("seal.to.high");
  const auto opened = open_sealed(high, "fabric/v1 member-token/b", sealed);
  ASSERT_TRUE(opened);
  EXPECT_THAT(opened->reveal(), ElementsAreArray(vector_of("seal.plaintext")));
  EXPECT_FALSE(open_sealed(low, "fabric/v1 member-token/b", sealed));
  EXPECT_FALSE(open_sealed(high, "fabric/v1 member-token/c", sealed));
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    auto changed = sealed;
    changed[i] ^= 0x40;
    EXPECT_FALSE(open_sealed(high, "fabric/v1 member-token/b", changed)) << i;
    EXPECT_FALSE(open_sealed(high, "fabric/v1 member-token/b", ByteView(sealed).first(i))) << i;
  }
}

TEST(Entropy, ItsFailureIsPassedOn) {
  BrokenEntropy entropy;
  EXPECT_FALSE(X25519KeyPair::draw(entropy));
  EXPECT_FALSE(Ed25519KeyPair::draw(entropy));
  EXPECT_FALSE(seal_to(entropy, X25519Public(array_of<32>("low.public")), "context", {}));
}

TEST(Entropy, TheSystemNeverDrawsTheSameTwice) {
  SystemEntropy entropy;
  EXPECT_FALSE(draw_secret(entropy, 32)->equals(*draw_secret(entropy, 32)));
}

TEST(Psk, IsDerivedAsTheVectorsSay) {
  for (const std::uint32_t number : {1U, 2U}) {
    const auto name = "psk" + std::to_string(number);
    const auto psk = Psk::make(number, secret_of(name));
    ASSERT_TRUE(psk);
    const auto& id = vector_of(name + ".id");
    EXPECT_EQ(psk->id().number, number);
    EXPECT_THAT(psk->id().fingerprint, ElementsAreArray(ByteView(id).last(8)));
    EXPECT_THAT(psk->mix().reveal(), ElementsAreArray(vector_of(name + ".mix")));
    EXPECT_THAT(psk->mac(view_of("abc")), ElementsAreArray(vector_of(name + ".mac.of.abc")));
  }
}

TEST(Psk, RefusesOneThatIsShorterThan256Bits) {
  EXPECT_FALSE(Psk::make(1, Secret(31)));
  EXPECT_TRUE(Psk::make(1, Secret(32)));
}

TEST(Psk, AnotherClusterSetHasOtherKeys) {
  const auto one = *Psk::make(1, secret_of("psk1"), "one");
  const auto two = *Psk::make(1, secret_of("psk1"), "two");
  EXPECT_NE(one.mac(view_of("abc")), two.mac(view_of("abc")));
  EXPECT_FALSE(one.mix().equals(two.mix()));
}

TEST(PskSet, RefusesTwoWithTheSameNumber) {
  PskSet set;
  EXPECT_TRUE(set.add(*Psk::make(1, secret_of("psk1"))));
  const auto again = set.add(*Psk::make(1, secret_of("psk2")));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::already_exists);
  EXPECT_TRUE(set.add(*Psk::make(2, secret_of("psk2"))));
  EXPECT_EQ(set.newest()->id().number, 2U);
}

TEST(IdentityMac, BindsClusterAndIdentity) {
  PskSet set;
  ASSERT_TRUE(set.add(*Psk::make(1, secret_of("psk1"))));
  const Ed25519Public low(array_of<32>("low.identity"));
  const Ed25519Public high(array_of<32>("high.identity"));
  const auto mac = identity_mac(*set.newest(), "a", low);
  EXPECT_THAT(mac, ElementsAreArray(vector_of("low.identity-mac")));
  EXPECT_TRUE(check_identity_mac(set, "a", low, mac));
  EXPECT_FALSE(check_identity_mac(set, "b", low, mac));
  EXPECT_FALSE(check_identity_mac(set, "a", high, mac));
  EXPECT_FALSE(check_identity_mac(set, "a", low, ByteView(mac).first(31)));
  EXPECT_FALSE(check_identity_mac(PskSet{}, "a", low, mac));
}

TEST(JoinRequestMac, BindsClusterReplyKeyAndIdentity) {
  PskSet set;
  ASSERT_TRUE(set.add(*Psk::make(1, secret_of("psk1"))));
  const Ed25519Public identity(array_of<32>("low.identity"));
  const X25519Public reply(array_of<32>("low.public"));
  const X25519Public other(array_of<32>("high.public"));
  const auto mac = join_request_mac(*set.newest(), "a", reply, identity);
  EXPECT_THAT(mac, ElementsAreArray(vector_of("low.join-mac")));
  EXPECT_TRUE(check_join_request_mac(set, "a", reply, identity, mac));
  EXPECT_FALSE(check_join_request_mac(set, "b", reply, identity, mac));
  EXPECT_FALSE(check_join_request_mac(set, "a", other, identity, mac));
  EXPECT_FALSE(check_identity_mac(set, "a", identity, mac));
}

PskBundle bundle_of(std::uint32_t number, std::optional<std::string> previous = {}) {
  PskBundle bundle{.number = number, .psk = secret_of("psk1"), .previous = std::nullopt};
  if (previous) bundle.previous = secret_of(*previous);
  return bundle;
}

TEST(PskBundle, GivesTheNewestPskAndThePreviousOneUnderItsNumber) {
  const auto both = make_psk_set(bundle_of(5, "psk2"));
  ASSERT_TRUE(both);
  const auto ids = both->ids();
  ASSERT_EQ(ids.size(), 2U);
  EXPECT_EQ(ids.front(), Psk::make(4, secret_of("psk2"))->id());
  EXPECT_EQ(both->newest()->id(), Psk::make(5, secret_of("psk1"))->id());

  const auto one = make_psk_set(bundle_of(1));
  ASSERT_TRUE(one);
  EXPECT_EQ(one->ids(), std::vector{Psk::make(1, secret_of("psk1"))->id()});
}

TEST(PskBundle, IsRefusedWhenItsPartsDoNotFit) {
  EXPECT_FALSE(make_psk_set(bundle_of(0)));
  EXPECT_FALSE(make_psk_set(bundle_of(1, "psk2"))) << "there is no PSK 0";
  EXPECT_FALSE(make_psk_set(bundle_of(2, "psk1"))) << "twice the same bytes";
  PskBundle brief = bundle_of(2, "psk2");
  brief.previous = Secret(31);
  EXPECT_FALSE(make_psk_set(brief));
}

TEST(PskBundle, IsEqualOnlyInAllParts) {
  const PskBundle bundle = bundle_of(2, "psk2");
  EXPECT_TRUE(bundle.equals(bundle.duplicate()));
  EXPECT_FALSE(bundle.equals(bundle_of(3, "psk2")));
  EXPECT_FALSE(bundle.equals(bundle_of(2)));
  EXPECT_FALSE(bundle.equals(bundle_of(2, "psk1")));
}

TEST(PskNumber, IsReadFromDecimalTextOnly) {
  EXPECT_EQ(parse_psk_number("1").value_or(0), 1U);
  EXPECT_EQ(parse_psk_number("4294967295").value_or(0), 4294967295U);
  for (const std::string_view text : {"", "0", "-1", "+1", "01", "1 ", "1\n", "4294967296", "one", "0x1"})
    EXPECT_FALSE(parse_psk_number(text)) << text;
}

TEST(IdentityMacs, AreKnownToHoldersOfEitherPskOfARotation) {
  const auto identity = Ed25519KeyPair::from_seed(secret_of("low.seed"))->public_key;
  const PskSet both = *make_psk_set(bundle_of(2, "psk2"));
  const std::string macs = identity_macs(both, "a", identity);
  PskSet older;
  ASSERT_TRUE(older.add(*Psk::make(1, secret_of("psk2"))));
  const PskSet newer = *make_psk_set(bundle_of(2));
  for (const PskSet* psks : {&both, &std::as_const(older), &newer}) {
    EXPECT_TRUE(check_identity_macs(*psks, "a", identity, macs));
    EXPECT_FALSE(check_identity_macs(*psks, "b", identity, macs));
  }
  EXPECT_TRUE(check_identity_macs(both, "a", identity, identity_macs(older, "a", identity)));
  EXPECT_FALSE(check_identity_macs(older, "a", identity, identity_macs(newer, "a", identity)));
  for (const std::string_view text : {"", ",", "AAAA", ",,"})
    EXPECT_FALSE(check_identity_macs(both, "a", identity, text)) << text;
}

}  // namespace
}  // namespace fabric::crypto
