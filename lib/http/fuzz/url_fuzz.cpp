#include <fabric/base/assert.hpp>
#include <fabric/http/url.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes as text.
  const auto url = fabric::http::Url::parse({reinterpret_cast<const char*>(bytes), size});
  if (!url) return 0;
  const auto again = fabric::http::Url::parse(url->to_string());
  FABRIC_ASSERT(again && *again == *url);
  return 0;
}
