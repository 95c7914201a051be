#include <fabric/controller/runtime.hpp>

#include <memory>
#include <random>

namespace fabric::controller {

RandomSource system_random() {
  auto engine = std::make_shared<std::mt19937_64>(std::random_device{}());
  return [engine] { return std::uniform_real_distribution<double>(0.0, 1.0)(*engine); };
}

}  // namespace fabric::controller
