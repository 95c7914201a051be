#pragma once

#include <fabric/base/error.hpp>
#include <fabric/base/strong_type.hpp>
#include <fabric/net/ip_address.hpp>

#include <string>
#include <string_view>

namespace fabric::api {

/// A DNS label of 1..63 characters; see parse_cluster_id.
using ClusterId = StrongType<struct ClusterIdTag, std::string>;
using NodeName = StrongType<struct NodeNameTag, std::string>;

/// Lower-case letters, digits and inner dashes, 1..63 characters (RFC 1123 label). Submariner also took dots, which
/// break its DNS names and label values.
bool is_dns_label(std::string_view text);
/// Labels joined by dots, at most 253 characters.
bool is_dns_subdomain(std::string_view text);

/// Errc::invalid names the value, the rule and, where one can be made, a name that would do.
Result<ClusterId> parse_cluster_id(std::string_view text);

/// "submariner-cable-<cluster>-<private ip>" with '.' and ':' as '-'.
std::string cable_name(const ClusterId& cluster, const net::IpAddress& private_ip);
/// "<cluster>-<cable name>", the name of a gateway's Endpoint object. May be longer than a label value allows.
std::string endpoint_name(const ClusterId& cluster, const net::IpAddress& private_ip);

}  // namespace fabric::api
