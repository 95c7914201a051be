#include <fabric/api/names.hpp>
#include <fabric/api/submariner.hpp>

namespace fabric::api {

namespace {

Result<> append(std::vector<net::Cidr>& out, const std::vector<std::string>& texts, std::string_view field) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    FABRIC_TRY(const auto cidr, net::Cidr::parse(texts[i]).with(fmt::format("spec.{}[{}]", field, i)));
    out.push_back(cidr);
  }
  return {};
}

}  // namespace

Result<std::vector<net::Cidr>> prefixes(const ClusterSpec& spec) {
  std::vector<net::Cidr> out;
  FABRIC_CHECK(append(out, spec.service_cidr, "service_cidr"));
  FABRIC_CHECK(append(out, spec.cluster_cidr, "cluster_cidr"));
  return out;
}

EndpointSpec public_view(EndpointSpec spec) {
  for (const auto key : {names::kKeysConfig, names::kStateConfig}) {
    if (const auto found = spec.backend_config.find(key); found != spec.backend_config.end()) {
      spec.backend_config.erase(found);
    }
  }
  return spec;
}

}  // namespace fabric::api

namespace fabric::json {
template struct Codec<api::Cluster>;
template struct Codec<api::Endpoint>;
template struct Codec<api::Gateway>;
template struct Codec<api::RouteAgent>;
}  // namespace fabric::json
