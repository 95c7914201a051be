#pragma once

#include <fabric/api/fabric.hpp>
#include <fabric/api/submariner.hpp>
#include <fabric/async/task.hpp>
#include <fabric/ctl/commands.hpp>

#include <string>
#include <vector>

/// What several commands read.
namespace fabric::ctl {

/// How often a waiting command looks: often enough for a person, no load for an API server.
inline constexpr Duration kPollInterval{1'000};

/// In all namespaces when `ns` is empty. Errc::unsupported when the API server has no such kind.
async::Task<Result<std::vector<api::Fabric>>> read_fabrics(Session session, std::string ns);

/// None when the API server has no such kind, as in a cluster that has not joined yet.
async::Task<Result<std::vector<api::Gateway>>> read_gateways(Session session);

/// Whether asking once more makes sense for somebody who waits.
bool is_passing(const Error& error);

}  // namespace fabric::ctl
