#include <fabric/base/assert.hpp>
#include <fabric/kube/status.hpp>
#include <fabric/kube/watch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

// The first byte is the size of the chunks. Whatever the chunks are, the same events come out.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace fabric::kube;
  if (size == 0) return 0;
  constexpr std::size_t kMaxFrame = 4096;
  const std::string_view text(reinterpret_cast<const char*>(bytes + 1), size - 1);
  const std::size_t step = std::max<std::size_t>(1, bytes[0]);

  WatchDecoder whole(kMaxFrame);
  std::vector<WatchEvent> expected;
  const bool whole_ok = whole.feed(text, expected).has_value();

  WatchDecoder pieces(kMaxFrame);
  std::vector<WatchEvent> events;
  bool pieces_ok = true;
  for (std::size_t at = 0; at < text.size() && pieces_ok; at += step)
    pieces_ok = pieces.feed(text.substr(at, step), events).has_value();

  FABRIC_ASSERT(whole_ok == pieces_ok);
  FABRIC_ASSERT(events.size() == expected.size());
  for (std::size_t i = 0; i < events.size(); ++i)
    FABRIC_ASSERT(events[i].object == expected[i].object);
  static_cast<void>(error_of_response(500, "fuzz", text, text.substr(0, 4)));
  return 0;
}
