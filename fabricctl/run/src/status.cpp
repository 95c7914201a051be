#include <fabric/ctl/status_report.hpp>

#include <ostream>

#include "reads.hpp"

namespace fabric::ctl {

async::Task<Result<Exit>> show_status(Session session, StatusCommand command) {
  ClusterView view;
  FABRIC_CO_TRY(view.fabrics, co_await read_fabrics(session, command.ns));
  FABRIC_CO_TRY(view.gateways, co_await read_gateways(session));
  view.now = session.clock.now();
  if (command.output == Output::json) {
    session.out << json::write_pretty(status_document(view)) << '\n';
  } else {
    session.out << status_text(view, command.verbose);
  }
  co_return is_ready(view) ? Exit::done : Exit::not_done;
}

}  // namespace fabric::ctl
