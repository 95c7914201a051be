#include <fabric/async/backoff.hpp>

#include <algorithm>
#include <cmath>

namespace fabric::async {

Duration Backoff::delay(unsigned attempt, double random) const {
  const auto ceiling = static_cast<double>(max.count());
  // pow() answers infinity for a large attempt, which min() turns into the ceiling.
  const double grown = static_cast<double>(initial.count()) * std::pow(factor, attempt);
  const double full = std::min(grown, ceiling);
  return Duration(static_cast<Duration::rep>(full * (1.0 - (jitter * (1.0 - random)))));
}

}  // namespace fabric::async
