#pragma once

#include <fabric/async/testing.hpp>
#include <fabric/ctl/commands.hpp>
#include <fabric/kube/fake/fake_api_server.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace fabric::ctl::test {

/// A command line's effect on a cluster that is a FakeApiServer, with time that stands still.
class Commands : public testing::Test {
 protected:
  /// Runs a command that ends without time passing.
  Result<Exit> run(Command command) { return loop_.run(run_command(session(), std::move(command))); }

  /// Starts one that waits.
  void start(Command command) {
    loop_.start(run_command(session(), std::move(command)), outcome_);
    loop_.settle();
  }

  Session session() {
    return {.client = *client_, .clock = loop_.clock(), .out = out_, .err = err_, .terminal = terminal_};
  }

  std::string out() { return std::exchange(out_, std::ostringstream()).str(); }

  std::string err() { return std::exchange(err_, std::ostringstream()).str(); }

  async::TestLoop loop_;
  telemetry::Registry metrics_;
  kube::fake::FakeApiServer server_{loop_.executor(), loop_.clock()};
  std::unique_ptr<kube::Client> client_ = server_.client(metrics_, {.field_manager = "fabricctl"});
  std::ostringstream out_;
  std::ostringstream err_;
  bool terminal_ = false;
  std::optional<Result<Exit>> outcome_;
};

}  // namespace fabric::ctl::test
