#include <fabric/ctl/commands.hpp>

#include <variant>

namespace fabric::ctl {

namespace {

struct Dispatch {
  Session session;

  async::Task<Result<Exit>> operator()(StatusCommand command) const { return show_status(session, std::move(command)); }

  async::Task<Result<Exit>> operator()(RekeyCommand command) const { return rekey(session, std::move(command)); }

  async::Task<Result<Exit>> operator()(RotatePskCommand command) const {
    return rotate_psk(session, std::move(command));
  }

  async::Task<Result<Exit>> operator()(BrokerInfoCommand command) const { return print_broker_info(session, command); }

  async::Task<Result<Exit>> operator()(StaticTunnelCommand command) const {
    co_return static_tunnel(command, session.out, session.err);
  }

  async::Task<Result<Exit>> operator()(VersionCommand /*command*/) const { co_return Exit::done; }
};

}  // namespace

async::Task<Result<Exit>> run_command(Session session, Command command) {
  return std::visit(Dispatch{session}, std::move(command));
}

}  // namespace fabric::ctl
