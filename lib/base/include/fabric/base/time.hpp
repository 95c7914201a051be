#pragma once

#include <chrono>

namespace fabric {

using Duration = std::chrono::milliseconds;

/// Wall-clock time in milliseconds since the Unix epoch. Planners receive it as an argument and never read a clock.
using TimePoint = std::chrono::time_point<std::chrono::system_clock, Duration>;

inline TimePoint to_time_point(std::chrono::system_clock::time_point t) {
  return std::chrono::time_point_cast<Duration>(t);
}

}  // namespace fabric
