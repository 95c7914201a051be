#include <fabric/kube/status.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace fabric::kube {
namespace {

struct Row {
  std::string name;
  int code;
  std::string reason;
  Errc expected;
};

class StatusTable : public testing::TestWithParam<Row> {};

TEST_P(StatusTable, SaysWhatTheCallerCanDo) {
  EXPECT_EQ(errc_of_status(GetParam().code, GetParam().reason), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(All, StatusTable,
                         testing::ValuesIn(std::vector<Row>{
                             {"bad_request", 400, "BadRequest", Errc::invalid},
                             {"unauthorized", 401, "Unauthorized", Errc::unauthorized},
                             {"forbidden", 403, "Forbidden", Errc::forbidden},
                             {"not_found", 404, "NotFound", Errc::not_found},
                             {"method", 405, "MethodNotAllowed", Errc::unsupported},
                             {"exists", 409, "AlreadyExists", Errc::already_exists},
                             {"conflict", 409, "Conflict", Errc::conflict},
                             {"gone", 410, "Gone", Errc::gone},
                             {"expired", 410, "Expired", Errc::gone},
                             {"media_type", 415, "UnsupportedMediaType", Errc::unsupported},
                             {"invalid", 422, "Invalid", Errc::invalid},
                             {"too_many", 429, "TooManyRequests", Errc::unavailable},
                             {"server_error", 500, "InternalError", Errc::unavailable},
                             {"server_timeout", 500, "ServerTimeout", Errc::unavailable},
                             {"bad_gateway", 502, "", Errc::unavailable},
                             {"unavailable", 503, "ServiceUnavailable", Errc::unavailable},
                             {"gateway_timeout", 504, "Timeout", Errc::unavailable},
                             {"unknown_server_error", 599, "", Errc::unavailable},
                             {"unknown_client_error", 418, "", Errc::invalid},
                             {"a_redirect_is_no_answer", 302, "", Errc::internal},
                         }),
                         [](const auto& info) { return info.param.name; });

TEST(Status, TheMessageNamesTheRequestAndCarriesTheServersWords) {
  const Error error = error_of_response(404, "get Secret ns/x",
                                        R"({"kind":"Status","reason":"NotFound","message":"secrets \"x\" not found"})");
  EXPECT_EQ(error.code, Errc::not_found);
  EXPECT_EQ(error.message(), "get Secret ns/x: secrets \"x\" not found");
}

TEST(Status, PlainTextIsQuotedUpToALimit) {
  const Error error = error_of_response(502, "list pods", std::string(1000, 'x') + "\n");
  EXPECT_EQ(error.code, Errc::unavailable);
  EXPECT_EQ(error.context, "list pods: HTTP 502: " + std::string(200, 'x'));
  EXPECT_EQ(error_of_response(503, "list pods", "").context, "list pods: HTTP 503");
}

TEST(Status, KeepsTheServersWishToWait) {
  EXPECT_EQ(retry_after(error_of_response(429, "x", "", "7")), std::chrono::seconds(7));
  EXPECT_EQ(retry_after(error_of_response(429, "x", R"({"kind":"Status","details":{"retryAfterSeconds":3}})")),
            std::chrono::seconds(3));
  EXPECT_EQ(retry_after(error_of_response(429, "x", "", "999999")), std::chrono::hours(1)) << "not for ever";
  for (const char* bad : {"", "soon", "-1", "1.5", "99999999999999999999"})
    EXPECT_EQ(retry_after(error_of_response(429, "x", "", bad)), std::nullopt) << bad;
  EXPECT_EQ(retry_after(Error{Errc::timeout, "x", std::make_error_code(std::errc::timed_out)}), std::nullopt);
}

}  // namespace
}  // namespace fabric::kube
