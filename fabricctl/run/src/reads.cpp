#include "reads.hpp"

#include <fabric/api/names.hpp>

namespace fabric::ctl {

namespace names = api::names;

async::Task<Result<std::vector<api::Fabric>>> read_fabrics(Session session, std::string ns) {
  auto listed = co_await session.client.list<api::Fabric>({std::move(ns), "", ""});
  if (listed) co_return std::move(listed->items);
  if (listed.error().code != Errc::not_found) co_return std::unexpected(std::move(listed).error());
  co_return fail(Errc::unsupported,
                 "this API server does not know Fabric.{}: install the operator's chart, or choose another "
                 "cluster with --context",
                 names::kFabricGroup);
}

async::Task<Result<std::vector<api::Gateway>>> read_gateways(Session session) {
  auto listed = co_await session.client.list<api::Gateway>({std::string(names::kOperatorNamespace), "", ""});
  if (listed) co_return std::move(listed->items);
  if (listed.error().code == Errc::not_found) co_return std::vector<api::Gateway>{};
  co_return std::unexpected(std::move(listed).error());
}

bool is_passing(const Error& error) {
  return error.code == Errc::unavailable || error.code == Errc::timeout || error.code == Errc::conflict;
}

}  // namespace fabric::ctl
