#include <fabric/json/base64.hpp>

#include <gtest/gtest.h>

namespace fabric::json {
namespace {

std::string text_of(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

TEST(Base64, MatchesTheVectorsOfRfc4648) {
  const std::pair<const char*, const char*> rows[] = {{"", ""},
                                                      {"f", "Zg=="},
                                                      {"fo", "Zm8="},
                                                      {"foo", "Zm9v"},
                                                      {"foob", "Zm9vYg=="},
                                                      {"fooba", "Zm9vYmE="},
                                                      {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : rows) {
    EXPECT_EQ(encode_base64(std::string_view(plain)), encoded);
    const auto decoded = decode_base64(encoded);
    ASSERT_TRUE(decoded) << encoded;
    EXPECT_EQ(text_of(*decoded), plain);
  }
}

TEST(Base64, ReadsBothAlphabetsWithAndWithoutPadding) {
  const std::vector<std::uint8_t> bytes{0xfb, 0xff, 0xfe, 0x01};
  EXPECT_EQ(encode_base64(bytes), "+//+AQ==");
  EXPECT_EQ(encode_base64(bytes, Base64Alphabet::url), "-__-AQ==");
  EXPECT_EQ(encode_base64(bytes, Base64Alphabet::url, false), "-__-AQ");
  for (const char* text : {"+//+AQ==", "-__-AQ==", "-__-AQ", "+//+AQ"}) {
    const auto decoded = decode_base64(text);
    ASSERT_TRUE(decoded) << text;
    EXPECT_EQ(*decoded, bytes);
  }
}

TEST(Base64, RefusesEverythingElseWithoutQuotingIt) {
  const std::pair<const char*, const char*> rows[] = {
      {"one character", "A"},        {"three paddings", "A==="},  {"padding of a full group", "AAAA===="},
      {"short padding", "AA="},      {"only padding", "=="},      {"padding inside", "AA==AAAA"},
      {"white space", "AAAA\nAAAA"}, {"mixed alphabets", "+_AA"}, {"set bits at the end", "AB=="},
      {"no digit", "A*AA"}};
  for (const auto& [name, text] : rows) {
    const auto decoded = decode_base64(text);
    ASSERT_FALSE(decoded) << name;
    EXPECT_EQ(decoded.error().code, Errc::invalid) << name;
    EXPECT_EQ(decoded.error().context.find(text), std::string::npos) << name;
    EXPECT_FALSE(decode_base64_secret(text)) << name;
  }
}

TEST(Base64, GivesASecretForSecretText) {
  const auto secret = decode_base64_secret("c2VjcmV0");
  ASSERT_TRUE(secret);
  EXPECT_TRUE(secret->equals(Secret::from_text("secret")));
}

}  // namespace
}  // namespace fabric::json
