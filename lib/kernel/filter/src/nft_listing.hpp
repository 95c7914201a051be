#pragma once

#include <string>

namespace fabric::kernel {

/// All tables and their chains as nft lists them; empty where the kernel has no nftables.
std::string list_nft_chains();

}  // namespace fabric::kernel
