#pragma once

#include <fabric/base/error.hpp>
#include <fabric/broker/broker_info.hpp>

#include <fmt/format.h>

namespace fabric::operators {

/// In the words of joinConfig, so that the message names what the user can change.
inline Error about_broker(Error error, const broker::BrokerInfo& info, std::string_view doing) {
  const std::string_view remedy =
      error.code == Errc::unauthorized
          ? "; the token in broker-info is not valid any more: copy the ConfigMap from the broker again"
      : error.code == Errc::forbidden
          ? "; the token in broker-info lacks rights: copy the ConfigMap from the broker again"
      : error.code == Errc::unavailable || error.code == Errc::timeout
          ? "; check that brokerURL is reachable from this cluster, or set brokerConfig.publicAPIServerURL at the "
            "broker"
          : "";
  Error out = std::move(error).with(fmt::format("broker {}: {}", info.url, doing));
  out.context += remedy;
  return out;
}

}  // namespace fabric::operators
