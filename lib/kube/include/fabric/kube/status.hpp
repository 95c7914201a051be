#pragma once

#include <fabric/base/error.hpp>
#include <fabric/base/time.hpp>
#include <fabric/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace fabric::kube {

/// The error that an API server's answer means. `what` names the request ("get Secret ns/x"), `body` is the answer (a
/// metav1.Status or anything else), `retry_after` is the header's value or empty. Pure.
Error error_of_response(int code, std::string_view what, std::string_view body, std::string_view retry_after = {});

/// The error of a metav1.Status object, as an ERROR event of a watch carries it.
Error error_of_status(const json::Value& status, std::string_view what);

/// What Errc an HTTP status and the reason of a metav1.Status mean.
Errc errc_of_status(int code, std::string_view reason);

/// How long the server asked to wait before the next try, if it did. Kept in Error::cause.
std::optional<Duration> retry_after(const Error& error);

}  // namespace fabric::kube
