#include <fabric/base/assert.hpp>
#include <fabric/crypto/record.hpp>

namespace {

using namespace fabric::crypto;

/// What the decoder takes must be what signing makes again: up to the MACs and the signature, whose keys differ.
template <class Record>
void check_canonical(const Record& record, ByteView bytes) {
  static const auto identity = *Ed25519KeyPair::from_seed(fabric::Secret(32));
  PskSet psks;
  FABRIC_ASSERT(psks.add(*Psk::make(1, fabric::Secret(32))));
  // The list of PSKs is replaced by signing, so only a record with as many is comparable byte by byte.
  const auto again = sign(record, psks, identity);
  if (!again || record.psks.size() != 1) return;
  FABRIC_ASSERT(again->bytes.size() == bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView bytes(data, size);
  if (const auto key = decode_key_record(bytes)) check_canonical(*key, bytes);
  if (const auto state = decode_state_record(bytes)) check_canonical(*state, bytes);
  return 0;
}
