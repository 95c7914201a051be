#include "tls.hpp"

#include <fabric/telemetry/log.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/error.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>

namespace fabric::http {

namespace ssl = boost::asio::ssl;

namespace {

using ErrorCode = boost::system::error_code;

Result<void> check(const ErrorCode& error, std::string_view what) {
  if (error) return fail(Errc::invalid, "{}: {}", what, error.message());
  return {};
}

Result<void> trust(ssl::context& context, const std::string& ca_pem) {
  ErrorCode error;
  if (ca_pem.empty()) {
    context.set_default_verify_paths(error);
    return check(error, "system certificate store");
  }
  context.add_certificate_authority(boost::asio::buffer(ca_pem), error);
  FABRIC_CHECK(check(error, "CA certificates"));
  // Text without any certificate in it is no error for Asio, and would trust nobody without saying so.
  X509_STORE* store = SSL_CTX_get_cert_store(context.native_handle());
  if (sk_X509_OBJECT_num(X509_STORE_get0_objects(store)) == 0) {
    return fail(Errc::invalid, "CA certificates: no certificate in the PEM text");
  }
  return {};
}

Result<void> identify(ssl::context& context, const TlsOptions& options) {
  const bool has_key = options.key_pem != nullptr && !options.key_pem->empty();
  if (options.certificate_pem.empty() != !has_key) {
    return fail(Errc::invalid, "client certificate: {} is missing", has_key ? "the certificate" : "its key");
  }
  if (!has_key) return {};
  ErrorCode error;
  context.use_certificate_chain(boost::asio::buffer(options.certificate_pem), error);
  FABRIC_CHECK(check(error, "client certificate"));
  const auto key = options.key_pem->reveal();
  context.use_private_key(boost::asio::buffer(key.data(), key.size()), ssl::context::pem, error);
  FABRIC_CHECK(check(error, "client key"));
  if (SSL_CTX_check_private_key(context.native_handle()) != 1) {
    ERR_clear_error();
    return fail(Errc::invalid, "client key: does not belong to the client certificate");
  }
  return {};
}

/// The alerts (RFC 8446 §6.2) by which a server says that it does not accept our certificate.
bool refuses_our_certificate(const ErrorCode& error) {
  if (error.category() != boost::asio::error::get_ssl_category()) return false;
  constexpr std::array kReasons{SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,     SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE,
                                SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
                                SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, SSL_R_TLSV1_ALERT_UNKNOWN_CA,
                                SSL_R_TLSV1_ALERT_ACCESS_DENIED,       SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED};
  const int reason = ERR_GET_REASON(static_cast<unsigned long>(error.value()));
  return std::ranges::find(kReasons, reason) != kReasons.end();
}

}  // namespace

Result<std::unique_ptr<ssl::context>> make_tls_context(const TlsOptions& options) {
  auto context = std::make_unique<ssl::context>(ssl::context::tls_client);
  if (SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION) != 1) {
    return fail(Errc::internal, "TLS 1.2 is not available");
  }
  ErrorCode error;
  if (options.insecure_skip_verify) {
    log::warn("server certificates are not verified; remove insecure-skip-tls-verify and give the CA", {});
    context->set_verify_mode(ssl::verify_none, error);
  } else {
    FABRIC_CHECK(trust(*context, options.ca_pem));
    context->set_verify_mode(ssl::verify_peer, error);
  }
  FABRIC_CHECK(check(error, "verification mode"));
  FABRIC_CHECK(identify(*context, options));
  return context;
}

Result<void> expect_peer(SSL* ssl, const std::string& host) {
  ErrorCode not_an_address;
  boost::asio::ip::make_address(host, not_an_address);
  X509_VERIFY_PARAM* expected = SSL_get0_param(ssl);
  X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  const bool set = not_an_address
                       ? SSL_set1_host(ssl, host.c_str()) == 1 &&
                             SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                                      const_cast<char*>(host.c_str())) == 1  // NOLINT: OpenSSL only reads it.
                       : X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str()) == 1;
  if (!set) {
    ERR_clear_error();
    return fail(Errc::invalid, "'{}' cannot be the name of a TLS server", host);
  }
  return {};
}

Error tls_error(const ErrorCode& error, SSL* ssl) {
  if (error == boost::asio::error::operation_aborted) return {Errc::cancelled, "shutting down", {}};
  if (ssl != nullptr) {
    const long verdict = SSL_get_verify_result(ssl);
    if (verdict != X509_V_OK && SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE) {
      return {Errc::unauthorized,
              fmt::format("server certificate is not accepted: {}", X509_verify_cert_error_string(verdict)),
              {}};
    }
    if (refuses_our_certificate(error)) {
      return {Errc::unauthorized, fmt::format("server does not accept our certificate: {}", error.message()), {}};
    }
  }
  return {Errc::unavailable, error.message(), {}};
}

}  // namespace fabric::http
