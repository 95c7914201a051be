#include <fabric/base/assert.hpp>
#include <fabric/json/value.hpp>

#include <cstddef>
#include <cstdint>

// Whatever parses is written so that it parses to an equal value again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto value = fabric::json::parse({reinterpret_cast<const char*>(bytes), size});
  if (!value) return 0;
  const auto again = fabric::json::parse(fabric::json::write(*value));
  FABRIC_ASSERT(again.has_value());
  FABRIC_ASSERT(*again == *value);
  return 0;
}
