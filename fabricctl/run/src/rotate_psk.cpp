#include <fabric/ctl/psk_rotation.hpp>
#include <fabric/json/time.hpp>

#include <fmt/format.h>

#include <ostream>

#include "reads.hpp"

namespace fabric::ctl {

namespace {

async::Task<Result<api::Fabric>> read_broker_fabric(Session session, std::string ns) {
  FABRIC_CO_TRY(const auto fabrics, co_await read_fabrics(session, ns));
  co_return broker_fabric(fabrics, ns.empty() ? std::string("in any namespace") : fmt::format("in namespace {}", ns));
}

async::Task<Result<Exit>> wait(Session session, kube::ObjectKey key, std::int64_t number, Duration timeout) {
  const async::SteadyTime until = session.clock.steady() + timeout;
  std::string last;
  while (true) {
    const auto fabric = co_await session.client.get<api::Fabric>(key);
    if (!fabric && !is_passing(fabric.error())) co_return std::unexpected(fabric.error());
    if (fabric) {
      std::string now = describe_rotation(*fabric);
      if (now != last) session.out << now << '\n' << std::flush;
      last = std::move(now);
      if (is_rotated_to(*fabric, number)) co_return Exit::done;
    }
    if (session.clock.steady() >= until) break;
    FABRIC_CO_CHECK(co_await async::sleep_for(session.clock, kPollInterval));
  }
  session.err << fmt::format(
      "not finished after {}: {}; the rotation goes on by itself, and every cluster stays connected "
      "meanwhile; look again with rotate-psk --status\n",
      json::format_duration(timeout), last);
  co_return Exit::not_done;
}

}  // namespace

async::Task<Result<Exit>> rotate_psk(Session session, RotatePskCommand command) {
  FABRIC_CO_TRY(const api::Fabric fabric, co_await read_broker_fabric(session, command.ns));
  if (command.status_only) {
    session.out << fmt::format("{}: {}\n", api::describe(fabric), describe_rotation(fabric));
    co_return is_rotating(fabric) ? Exit::not_done : Exit::done;
  }
  const auto rotation = plan_rotation(fabric);
  if (!rotation) {
    session.err << "refused: " << rotation.error().message() << '\n';
    co_return Exit::not_done;
  }
  const kube::ObjectKey key{fabric.metadata.ns, fabric.metadata.name};
  const auto patched = co_await session.client.merge_patch(kube::resource_of<api::Fabric>(), key, rotation->patch);
  if (!patched && patched.error().code == Errc::conflict) {
    session.err << fmt::format(
        "refused: {} was changed by somebody else at the same time: look at it, then run this again\n",
        api::describe(fabric));
    co_return Exit::not_done;
  }
  if (!patched) co_return std::unexpected(patched.error());
  session.out << fmt::format("{}: spec.brokerConfig.pskNumber is {} now: PSK {} replaces PSK {}\n",
                             api::describe(fabric), rotation->to, rotation->to, rotation->from)
              << std::flush;
  if (!command.wait) {
    session.out << "every cluster follows by itself; see rotate-psk --status\n";
    co_return Exit::done;
  }
  co_return co_await wait(session, key, rotation->to, command.timeout);
}

}  // namespace fabric::ctl
