#pragma once

#include <string_view>

namespace fabric {

/// The version of this build, "0.1.0", as in CMakeLists.txt and in the chart.
std::string_view version();

}  // namespace fabric
