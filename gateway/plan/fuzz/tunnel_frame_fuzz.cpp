#include <fabric/base/assert.hpp>
#include <fabric/gateway/tunnel_frame.hpp>

#include <algorithm>

namespace {

using namespace fabric::gateway;
namespace crypto = fabric::crypto;

crypto::PskSet one_psk() {
  crypto::PskSet psks;
  FABRIC_ASSERT(psks.add(*crypto::Psk::make(1, fabric::Secret(32))));
  return psks;
}

/// A frame with a right MAC around these bytes, as a member that means harm could send it.
crypto::Bytes with_mac(crypto::ByteView body, const crypto::PskSet& psks) {
  constexpr std::array<std::uint8_t, 4> kMagic = {'F', 'B', 'R', '1'};
  crypto::Bytes message(kMagic.begin(), kMagic.end());
  crypto::Bytes out = message;
  message.insert(message.end(), body.begin(), body.end());
  const auto* psk = psks.newest();
  out.insert(out.end(), {1, 0, 0, 0, 1});
  out.insert(out.end(), psk->id().fingerprint.begin(), psk->id().fingerprint.end());
  const auto mac = psk->mac(message);
  out.insert(out.end(), mac.begin(), mac.end());
  out.insert(out.end(), body.begin(), body.end());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto psks = one_psk();
  const crypto::ByteView bytes(data, size);
  FABRIC_ASSERT(!open_frame(bytes, psks));
  const auto framed = with_mac(bytes, psks);
  const auto frame = open_frame(framed, psks);
  if (!frame) return 0;
  // A content has one encoding.
  const auto again = seal_frame(*frame, psks);
  FABRIC_ASSERT(again && *again == framed);
  return 0;
}
