#pragma once

#include <fabric/api/names.hpp>

#include <string>
#include <string_view>

/// Names of broker objects that only the operator and the CLI need; those of everybody are in api/names.hpp.
namespace fabric::broker {

namespace names = api::names;

inline constexpr std::string_view kClientTokenSecret = "submariner-k8s-broker-client-token";
inline constexpr std::string_view kClientRole = "submariner-k8s-broker-client";
inline constexpr std::string_view kGlobalnetInfo = "submariner-globalnet-info";  // Submariner
inline constexpr std::string_view kMemberPolicy = "fabric-member-writes-own-records";
inline constexpr std::string_view kClientPolicy = "fabric-client-only-asks-to-join";

std::string join_request_name(std::string_view cluster_id);
std::string member_answer_name(std::string_view cluster_id);
std::string member_account_name(std::string_view cluster_id);
/// The token Secret of a member's service account.
std::string member_token_name(std::string_view cluster_id);
/// Submariner's name of the binding of a member to the member role.
std::string member_binding_name(std::string_view cluster_id);

/// Role and binding that let a member read its own answer.
std::string member_answer_role_name(std::string_view cluster_id);

/// The cluster id of a ConfigMap fabric-join-<id>; empty for other names.
std::string_view cluster_of_join_request(std::string_view config_map);
/// The cluster id of a ConfigMap fabric-member-<id>; empty for other names.
std::string_view cluster_of_member_answer(std::string_view config_map);

}  // namespace fabric::broker
