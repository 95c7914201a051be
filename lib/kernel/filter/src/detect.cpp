#include "engine.hpp"
#include "legacy_table.hpp"
#include "nft_listing.hpp"

namespace fabric::kernel {

FilterDetection detect_filter_backend() {
  FilterDetection found;
  found.nft_supported = nft_supported();
  for (const auto family : {Family::ipv4, Family::ipv6}) {
    found.masquerade_in_legacy = found.masquerade_in_legacy || legacy_chain_exists(family, "nat", "KUBE-POSTROUTING");
  }
  const auto chains = list_nft_chains();
  found.masquerade_in_nft = chains.contains("chain KUBE-POSTROUTING ") || chains.contains("table ip kube-proxy ") ||
                            chains.contains("table ip6 kube-proxy ");
  found.backend = found.nft_supported ? netstate::FilterBackend::nft : netstate::FilterBackend::legacy;
  const auto* where = found.masquerade_in_nft      ? "nftables"
                      : found.masquerade_in_legacy ? "legacy iptables"
                                                   : "neither backend";
  found.reason = fmt::format("the kernel {} nftables for IPv4 and IPv6; kube-proxy's rules are seen in {}",
                             found.nft_supported ? "supports" : "does not support", where);
  return found;
}

}  // namespace fabric::kernel
