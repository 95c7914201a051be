#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/ctl/options.hpp>
#include <fabric/kube/client.hpp>

#include <iosfwd>

/// The commands, each as one coroutine: read objects, let the pure part decide, print, write at most one field.
namespace fabric::ctl {

/// What a program's caller sees.
enum class Exit : int {
  done = 0,
  not_done = 1,  ///< Not Ready, refused, or not finished in time; what was printed says which.
  failed = 2,    ///< The command line is wrong or the API server cannot be asked.
};

/// What a command works with; all of it outlives the command.
struct Session {
  kube::Client& client;
  async::Clock& clock;
  std::ostream& out;  ///< Results.
  std::ostream& err;  ///< Notes and warnings.
  bool terminal;      ///< Whether a person reads `out`.
};

/// Errors are those of the API server and of arguments that do not fit the cluster: the caller prints them and ends
/// with Exit::failed.
async::Task<Result<Exit>> show_status(Session session, StatusCommand command);
async::Task<Result<Exit>> rekey(Session session, RekeyCommand command);
async::Task<Result<Exit>> rotate_psk(Session session, RotatePskCommand command);
async::Task<Result<Exit>> print_broker_info(Session session, BrokerInfoCommand command);

/// Blocks, in the network namespace of the calling thread. Needs root, and no cluster.
Result<Exit> static_tunnel(const StaticTunnelCommand& command, std::ostream& out, std::ostream& err);

async::Task<Result<Exit>> run_command(Session session, Command command);

}  // namespace fabric::ctl
