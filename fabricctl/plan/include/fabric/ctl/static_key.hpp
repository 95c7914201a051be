#pragma once

#include <fabric/base/error.hpp>
#include <fabric/base/secret.hpp>

#include <string_view>

namespace fabric::ctl {

/// The key of a static tunnel from hex digits as `ip xfrm` takes them, with or without 0x in front and white space
/// around: 20 or 36 bytes, the last 4 of which are the salt. Errors never quote the text.
Result<Secret> parse_static_key(std::string_view text);

}  // namespace fabric::ctl
