#include <fabric/ctl/static_key.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fabric::ctl {
namespace {

std::string digits(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i)
    text += i % 2 == 0 ? "aB" : "07";
  return text;
}

TEST(StaticKey, IsReadAsIpXfrmTakesIt) {
  struct Row {
    const char* name;
    std::string text;
    std::size_t size;
  };

  for (const Row& row : {Row{"AES-256", digits(36), 36}, Row{"AES-128", digits(20), 20},
                         Row{"with 0x", "0x" + digits(20), 20}, Row{"with a line end", "0X" + digits(36) + "\r\n", 36},
                         Row{"with space around", " \n" + digits(36) + " ", 36}}) {
    const auto key = parse_static_key(row.text);
    ASSERT_TRUE(key) << row.name << ": " << key.error().message();
    ASSERT_EQ(key->size(), row.size) << row.name;
    EXPECT_EQ(key->reveal()[0], 0xab) << row.name;
    EXPECT_EQ(key->reveal()[1], 0x07) << row.name;
  }
}

TEST(StaticKey, IsRefusedWithoutBeingQuoted) {
  struct Row {
    const char* name;
    std::string text;
    const char* expected;
  };

  for (const Row& row :
       {Row{"nothing", "", "0 bytes"}, Row{"only space", " \n", "0 bytes"}, Row{"AES-192", digits(28), "AES-192"},
        Row{"no salt", digits(32), "32 bytes"}, Row{"an odd digit", digits(36) + "a", "even number"},
        Row{"no digit", digits(35) + "zz", "hex digits"}, Row{"half a digit", digits(35) + "az", "hex digits"},
        Row{"a sign", digits(35) + "-1", "hex digits"}, Row{"two lines", digits(18) + "\n" + digits(18), "hex digits"},
        Row{"0x twice", "0x0x" + digits(20), "hex digits"}}) {
    const auto key = parse_static_key(row.text);
    ASSERT_FALSE(key) << row.name;
    EXPECT_EQ(key.error().code, Errc::invalid) << row.name;
    EXPECT_THAT(key.error().message(), testing::HasSubstr(row.expected)) << row.name;
    EXPECT_THAT(key.error().message(), testing::Not(testing::HasSubstr("aB07"))) << row.name;
  }
}

}  // namespace
}  // namespace fabric::ctl
