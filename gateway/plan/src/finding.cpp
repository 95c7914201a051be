#include <fabric/gateway/finding.hpp>

namespace fabric::gateway {

std::string_view to_string(FindingKind kind) {
  switch (kind) {
    case FindingKind::no_path:
      return "NoPath";
    case FindingKind::not_derivable:
      return "NoCommonKey";
    case FindingKind::sa_lost:
      return "SaLost";
    case FindingKind::spi_clash:
      return "SpiClash";
    case FindingKind::prefix_overlap:
      return "PrefixOverlap";
    case FindingKind::no_gateway:
      return "NoGateway";
    case FindingKind::old_generation:
      return "OldGeneration";
  }
  return "Unknown";
}

}  // namespace fabric::gateway
