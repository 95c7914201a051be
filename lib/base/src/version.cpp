#include <fabric/base/version.hpp>

namespace fabric {

std::string_view version() {
  return FABRIC_VERSION;
}

}  // namespace fabric
