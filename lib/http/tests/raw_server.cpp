#include "raw_server.hpp"

#include <fabric/base/assert.hpp>
#include <fabric/base/unique_resource.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <charconv>
#include <utility>

namespace fabric::http::test {

namespace {

using boost::asio::ip::tcp;
constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

using Bio = UniqueResource<&BIO_free>;
using Key = UniqueResource<&EVP_PKEY_free>;
using X509Cert = UniqueResource<&X509_free>;
using Extension = UniqueResource<&X509_EXTENSION_free>;

template <class Write>
std::string to_pem(Write write) {
  const Bio bio(BIO_new(BIO_s_mem()));
  FABRIC_ASSERT(write(bio.get()) == 1);
  const char* text = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

Bio reader_of(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  FABRIC_ASSERT(extension && X509_add_ext(certificate, extension.get(), -1) == 1);
}

}  // namespace

Peer::Peer(tcp::socket socket, boost::asio::ssl::context* tls) : socket_(std::move(socket)) {
  if (tls != nullptr) tls_.emplace(socket_, *tls);
}

async::Task<bool> Peer::handshake() {
  if (!tls_) co_return true;
  const auto [error] = co_await tls_->async_handshake(boost::asio::ssl::stream_base::server, kAwait);
  co_return !error;
}

async::Task<std::size_t> Peer::read_some(std::vector<char>& into) {
  const auto buffer = boost::asio::buffer(into);
  const auto [error, count] =
      tls_ ? co_await tls_->async_read_some(buffer, kAwait) : co_await socket_.async_read_some(buffer, kAwait);
  co_return error ? 0 : count;
}

async::Task<std::string> Peer::request() {
  std::vector<char> scratch(4096);
  while (true) {
    if (const auto end = raw_.find("\r\n\r\n"); end != std::string::npos) {
      std::size_t body = 0;
      constexpr std::string_view kLength = "Content-Length: ";
      if (const auto at = raw_.find(kLength); at < end) {
        std::from_chars(raw_.data() + at + kLength.size(), raw_.data() + end, body);
      }
      const auto size = end + 4 + body;
      if (raw_.size() >= size) {
        auto request = raw_.substr(0, size);
        raw_.erase(0, size);
        co_return request;
      }
    }
    const auto count = co_await read_some(scratch);
    if (count == 0) co_return std::string();
    raw_.append(scratch.data(), count);
  }
}

async::Task<void> Peer::write(std::string text) {
  const auto buffer = boost::asio::buffer(text);
  const auto [error, count] = tls_ ? co_await boost::asio::async_write(*tls_, buffer, kAwait)
                                   : co_await boost::asio::async_write(socket_, buffer, kAwait);
  static_cast<void>(error);
  static_cast<void>(count);
}

async::Task<bool> Peer::closed_by_client() {
  std::vector<char> scratch(4096);
  co_return co_await read_some(scratch) == 0;
}

async::Task<void> Peer::close() {
  if (tls_) {
    // The client answers the alert only when it looks, so its answer is not waited for.
    boost::system::error_code ignored;
    socket_.non_blocking(true, ignored);
    SSL_shutdown(tls_->native_handle());
    co_await write({});
  }
  cut();
}

void Peer::cut() {
  boost::system::error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
}

RawServer::RawServer(boost::asio::io_context& io, Script script, std::optional<boost::asio::ssl::context> tls)
    : state_(std::make_shared<State>(io, std::move(script), std::move(tls))) {
  const tcp::endpoint endpoint(boost::asio::ip::address_v4::loopback(), 0);
  state_->acceptor.open(endpoint.protocol());
  state_->acceptor.bind(endpoint);
  state_->acceptor.listen();
  boost::asio::co_spawn(io, accept(state_), boost::asio::detached);
}

RawServer::~RawServer() {
  boost::system::error_code ignored;
  state_->acceptor.close(ignored);
}

std::uint16_t RawServer::port() const {
  return state_->acceptor.local_endpoint().port();
}

async::Task<void> RawServer::accept(std::shared_ptr<State> state) {
  while (true) {
    auto [error, socket] = co_await state->acceptor.async_accept(kAwait);
    if (error) co_return;
    auto peer = std::make_shared<Peer>(std::move(socket), state->tls ? &*state->tls : nullptr);
    boost::asio::co_spawn(state->acceptor.get_executor(), serve(state, std::move(peer), state->connections++),
                          boost::asio::detached);
  }
}

async::Task<void> RawServer::serve(std::shared_ptr<State> state, std::shared_ptr<Peer> peer, int number) {
  if (co_await peer->handshake()) co_await state->script(std::move(peer), number);
}

Certificate make_certificate(const CertificateOptions& options, const Certificate* issuer) {
  const Key key(EVP_EC_gen("P-256"));
  const X509Cert certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  static long serial = 0;
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -7200);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), options.valid_seconds);
  X509_set_pubkey(certificate.get(), key.get());
  const std::vector<unsigned char> name(options.common_name.begin(), options.common_name.end());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8, name.data(),
                             static_cast<int>(name.size()), -1, 0);

  X509Cert issuer_certificate;
  Key issuer_key;
  if (issuer != nullptr) {
    issuer_certificate.reset(PEM_read_bio_X509(reader_of(issuer->certificate).get(), nullptr, nullptr, nullptr));
    issuer_key.reset(PEM_read_bio_PrivateKey(reader_of(issuer->key).get(), nullptr, nullptr, nullptr));
  }
  X509* const by = issuer_certificate ? issuer_certificate.get() : certificate.get();
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(by));
  add_extension(certificate.get(), by, NID_basic_constraints, options.is_ca ? "critical,CA:TRUE" : "CA:FALSE");
  if (!options.alternative_names.empty()) {
    add_extension(certificate.get(), by, NID_subject_alt_name, options.alternative_names);
  }
  FABRIC_ASSERT(X509_sign(certificate.get(), issuer_key ? issuer_key.get() : key.get(), EVP_sha256()) > 0);
  return {to_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate.get()); }), to_pem([&](BIO* bio) {
            return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

boost::asio::ssl::context server_context(const Certificate& own, const std::string& client_ca) {
  namespace ssl = boost::asio::ssl;
  ssl::context context(ssl::context::tls_server);
  context.use_certificate_chain(boost::asio::buffer(own.certificate));
  context.use_private_key(boost::asio::buffer(own.key), ssl::context::pem);
  if (!client_ca.empty()) {
    context.add_certificate_authority(boost::asio::buffer(client_ca));
    context.set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
  }
  return context;
}

}  // namespace fabric::http::test
