#include <fabric/api/identity.hpp>

#include <algorithm>

namespace fabric::api {

namespace {

constexpr std::size_t kMaxLabel = 63;
constexpr std::size_t kMaxSubdomain = 253;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// The nearest label, for the remedy: lower case, dashes for everything else, none at the ends.
std::string label_like(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kMaxLabel)) {
    const char low = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    out += is_alphanumeric(low) ? low : '-';
  }
  const auto first = out.find_first_not_of('-');
  if (first == std::string::npos) return {};
  return out.substr(first, out.find_last_not_of('-') - first + 1);
}

std::string with_dashes(std::string text) {
  std::ranges::replace_if(text, [](char c) { return c == '.' || c == ':'; }, '-');
  return text;
}

}  // namespace

bool is_dns_label(std::string_view text) {
  if (text.empty() || text.size() > kMaxLabel) return false;
  return is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::ranges::all_of(text, [](char c) { return is_alphanumeric(c) || c == '-'; });
}

bool is_dns_subdomain(std::string_view text) {
  if (text.empty() || text.size() > kMaxSubdomain) return false;
  while (true) {
    const auto dot = text.find('.');
    if (!is_dns_label(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

Result<ClusterId> parse_cluster_id(std::string_view text) {
  if (is_dns_label(text)) return ClusterId(std::string(text));
  const std::string near = label_like(text);
  return fail(Errc::invalid, "cluster ID '{}' is no DNS label (1..63 of a-z, 0-9 and inner dashes){}{}{}",
              text.substr(0, 80), near.empty() ? "" : ": use '", near, near.empty() ? "" : "'");
}

std::string cable_name(const ClusterId& cluster, const net::IpAddress& private_ip) {
  return fmt::format("submariner-cable-{}-{}", cluster, with_dashes(private_ip.to_string()));
}

std::string endpoint_name(const ClusterId& cluster, const net::IpAddress& private_ip) {
  return fmt::format("{}-{}", cluster, cable_name(cluster, private_ip));
}

}  // namespace fabric::api
