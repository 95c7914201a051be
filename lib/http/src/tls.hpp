#pragma once

#include <fabric/base/error.hpp>
#include <fabric/http/client.hpp>

#include <boost/asio/ssl/context.hpp>

#include <memory>
#include <string>

namespace fabric::http {

/// A client context with the options' certificates; Errc::invalid when one cannot be read.
Result<std::unique_ptr<boost::asio::ssl::context>> make_tls_context(const TlsOptions& options);

/// Sets the server name indication and what the certificate has to carry: a DNS name or an IP address among its subject
/// alternative names (RFC 6125; the common name does not count).
Result<void> expect_peer(SSL* ssl, const std::string& host);

/// What a TLS or socket error means for a caller: a refused certificate, of either side, is Errc::unauthorized.
Error tls_error(const boost::system::error_code& error, SSL* ssl);

}  // namespace fabric::http
