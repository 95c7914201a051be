#include <fabric/http/message.hpp>
#include <fabric/http/url.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::http {
namespace {

struct Good {
  std::string name;
  std::string text;
  Url url;
};

class UrlGood : public ::testing::TestWithParam<Good> {};

TEST_P(UrlGood, ParsesAndPrintsBack) {
  const auto url = Url::parse(GetParam().text);
  ASSERT_TRUE(url) << url.error().message();
  EXPECT_EQ(*url, GetParam().url);
  EXPECT_EQ(*Url::parse(url->to_string()), *url);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, UrlGood,
    ::testing::Values(Good{"name", "https://Api.Example", {Scheme::https, "api.example", 443, "/"}},
                      Good{"port_and_path", "HTTPS://a:6443/api?x=1", {Scheme::https, "a", 6443, "/api?x=1"}},
                      Good{"plain", "http://127.0.0.1/", {Scheme::http, "127.0.0.1", 80, "/"}},
                      Good{"ipv6", "https://[FD00::1]:6443", {Scheme::https, "fd00::1", 6443, "/"}},
                      Good{"ipv6_without_port", "https://[::1]/x", {Scheme::https, "::1", 443, "/x"}},
                      Good{"query_without_path", "http://a?b", {Scheme::http, "a", 80, "/?b"}}),
    [](const auto& row) { return row.param.name; });

struct Bad {
  std::string name;
  std::string text;
};

class UrlBad : public ::testing::TestWithParam<Bad> {};

TEST_P(UrlBad, IsRefused) {
  const auto url = Url::parse(GetParam().text);
  ASSERT_FALSE(url);
  EXPECT_EQ(url.error().code, Errc::invalid);
}

INSTANTIATE_TEST_SUITE_P(Rows, UrlBad,
                         ::testing::Values(Bad{"empty", ""}, Bad{"no_scheme", "example.com"},
                                           Bad{"other_scheme", "ftp://a"}, Bad{"no_host", "https://"},
                                           Bad{"no_host_but_port", "https://:443"}, Bad{"port_zero", "https://a:0"},
                                           Bad{"port_too_large", "https://a:65536"}, Bad{"port_empty", "https://a:"},
                                           Bad{"port_negative", "https://a:-1"},
                                           Bad{"port_with_letters", "https://a:44x"},
                                           Bad{"bracket_open", "https://[::1"}, Bad{"bracket_with_name", "https://[a]"},
                                           Bad{"text_after_bracket", "https://[::1]x"}, Bad{"user", "https://u:p@a"},
                                           Bad{"fragment", "https://a/#b"}, Bad{"space", "https://a/ b"},
                                           Bad{"line_break", "https://a/\r\n"}, Bad{"percent_in_host", "https://a%41"},
                                           Bad{"ipv6_without_brackets", "https://fd00::1"}),
                         [](const auto& row) { return row.param.name; });

TEST(Url, DoesNotRepeatAPasswordInItsError) {
  const auto url = Url::parse("https://user:s3cret@host/");
  ASSERT_FALSE(url);
  EXPECT_THAT(url.error().context, ::testing::Not(::testing::HasSubstr("s3cret")));
}

TEST(Url, WithTargetKeepsTheOrigin) {
  const auto url = Url::parse("https://[fd00::1]:6443/api");
  EXPECT_EQ(url->with_target("/version").to_string(), "https://[fd00::1]:6443/version");
}

TEST(PercentEncode, LeavesOnlyUnreservedCharacters) {
  EXPECT_EQ(percent_encode("a-Z_0.~ /?=&%\xc3\xa9"), "a-Z_0.~%20%2F%3F%3D%26%25%C3%A9");
}

TEST(FindHeader, IgnoresCase) {
  const Headers headers{{"Content-Type", "a"}, {"content-type", "b"}};
  EXPECT_EQ(find_header(headers, "CONTENT-TYPE"), "a");
  EXPECT_FALSE(find_header(headers, "Content"));
}

}  // namespace
}  // namespace fabric::http
