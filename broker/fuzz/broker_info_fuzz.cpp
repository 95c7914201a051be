#include <fabric/broker/broker_info.hpp>
#include <fabric/json/base64.hpp>

#include <cstdlib>

/// Both the whole text and the JSON inside the base64 are attacked: the first byte chooses.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::uint8_t> rest(bytes + 1, size - 1);
  const std::string text =
      (*bytes & 1U) != 0 ? fabric::json::encode_base64(rest) : std::string(rest.begin(), rest.end());
  const auto read = fabric::broker::read_broker_info(text);
  if (!read) return 0;
  // What was accepted survives being written and read.
  const auto again = fabric::broker::read_broker_info(fabric::broker::write_broker_info(read->info));
  if (!again || again->info.url != read->info.url || !again->info.psk.equals(read->info.psk)) std::abort();
  return 0;
}
