#pragma once

#include <fabric/base/unique_resource.hpp>

#include <openssl/evp.h>

namespace fabric::crypto {

using EvpKey = UniqueResource<&EVP_PKEY_free>;
using EvpKeyContext = UniqueResource<&EVP_PKEY_CTX_free>;
using EvpDigestContext = UniqueResource<&EVP_MD_CTX_free>;
using EvpCipherContext = UniqueResource<&EVP_CIPHER_CTX_free>;

}  // namespace fabric::crypto
