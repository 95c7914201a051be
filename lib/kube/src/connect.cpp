#include <fabric/http/client.hpp>
#include <fabric/kube/client.hpp>

#include <utility>

namespace fabric::kube {
namespace {

Result<std::shared_ptr<Credentials>> credentials_of(Config& config, async::Clock& clock) {
  if (!config.token.empty()) return Credentials::fixed(std::move(config.token));
  if (config.token_file) return Credentials::from_file(*config.token_file, clock);
  return Credentials::none();
}

}  // namespace

Result<Connection> connect(async::Executor executor, Config config, async::Clock& clock, telemetry::Registry& metrics,
                           ClientOptions options) {
  FABRIC_TRY(http::Url server, http::Url::parse(config.server).with("API server"));
  FABRIC_TRY(std::shared_ptr<Credentials> credentials, credentials_of(config, clock));
  http::ClientOptions transport_options;
  transport_options.tls.ca_pem = std::move(config.ca_pem);
  transport_options.tls.server_name = std::move(config.tls_server_name);
  transport_options.tls.insecure_skip_verify = config.insecure_skip_tls_verify;
  transport_options.tls.certificate_pem = std::move(config.client_certificate_pem);
  if (!config.client_key_pem.empty())
    transport_options.tls.key_pem = std::make_shared<const Secret>(std::move(config.client_key_pem));
  FABRIC_TRY(auto transport, http::Client::open(std::move(executor), std::move(transport_options)));
  Connection out{std::move(transport), nullptr};
  out.client = std::make_unique<Client>(*out.transport, std::move(server), std::move(credentials), clock, metrics,
                                        std::move(options));
  return out;
}

}  // namespace fabric::kube
