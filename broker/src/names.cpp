#include <fabric/broker/names.hpp>

#include <fmt/format.h>

namespace fabric::broker {

std::string join_request_name(std::string_view cluster_id) {
  return fmt::format("{}{}", names::kJoinRequestPrefix, cluster_id);
}

std::string member_answer_name(std::string_view cluster_id) {
  return fmt::format("{}{}", names::kMemberAnswerPrefix, cluster_id);
}

std::string member_account_name(std::string_view cluster_id) {
  return fmt::format("{}{}", names::kMemberAccountPrefix, cluster_id);
}

std::string member_token_name(std::string_view cluster_id) {
  return fmt::format("{}-token", member_account_name(cluster_id));
}

std::string member_binding_name(std::string_view cluster_id) {
  return fmt::format("{}-{}", member_account_name(cluster_id), names::kMemberRole);
}

std::string member_answer_role_name(std::string_view cluster_id) {
  return fmt::format("{}-own-answer", member_account_name(cluster_id));
}

std::string_view cluster_of_join_request(std::string_view config_map) {
  if (!config_map.starts_with(names::kJoinRequestPrefix)) return {};
  return config_map.substr(names::kJoinRequestPrefix.size());
}

std::string_view cluster_of_member_answer(std::string_view config_map) {
  if (!config_map.starts_with(names::kMemberAnswerPrefix)) return {};
  return config_map.substr(names::kMemberAnswerPrefix.size());
}

}  // namespace fabric::broker
