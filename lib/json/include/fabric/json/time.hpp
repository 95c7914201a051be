#pragma once

#include <fabric/base/error.hpp>
#include <fabric/base/time.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace fabric::json {

/// Kubernetes' MicroTime (Lease, Event): microseconds since the Unix epoch.
using MicroTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;

/// RFC 3339 with any offset and up to nine digits of fraction; finer digits are cut. Errc::invalid otherwise.
Result<MicroTime> parse_time(std::string_view text);

/// "2006-01-02T15:04:05Z": metav1.Time has whole seconds.
std::string format_time(TimePoint time);
/// "2006-01-02T15:04:05.000000Z", always six digits, as metav1.MicroTime is written.
std::string format_micro_time(MicroTime time);

/// Go's duration text: "1h30m", "250ms", "1.5s", "-2us", "0". Errc::invalid otherwise or beyond 292 years.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

/// Go's Duration.String(): "1h30m0s", "1.5s", "250ms", "0s".
std::string format_duration(std::chrono::nanoseconds duration);

}  // namespace fabric::json
