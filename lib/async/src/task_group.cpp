#include <fabric/async/task_group.hpp>
#include <fabric/telemetry/log.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <csignal>
#include <list>
#include <optional>

#include "gate.hpp"
#include "guard.hpp"

namespace fabric::async {

namespace {

struct Root {
  std::string name;
  boost::asio::cancellation_signal cancel;
  Result<void> result;
};

}  // namespace

struct TaskGroup::State : std::enable_shared_from_this<TaskGroup::State> {
  explicit State(Executor e) : executor(std::move(e)), idle(std::make_shared<detail::Gate>(executor)) { idle->open(); }

  void stop() {
    if (!std::exchange(stopping, true)) cancel_all();
  }

  /// Until no root is left.
  void cancel_all() {
    again = roots.empty() ? nullptr
                          : clock.call_at(clock.steady() + detail::kRepeatCancellation, [weak = weak_from_this()] {
                              if (const auto alive = weak.lock()) alive->cancel_all();
                            });
    // Emitting may end a root at once, which takes it off the list.
    const auto snapshot = roots;
    for (const auto& root : snapshot)
      root->cancel.emit(boost::asio::cancellation_type::terminal);
  }

  void ended(const std::shared_ptr<Root>& root, const std::exception_ptr& thrown) {
    if (thrown) root->result = std::unexpected(detail::error_of(thrown));
    std::erase(roots, root);
    if (!root->result && !(stopping && root->result.error().code == Errc::cancelled)) {
      log::error("task failed", {{"task", root->name}, {"error", root->result.error()}});
      if (outcome) outcome = std::unexpected(std::move(root->result.error()).with(root->name));
      stop();
    }
    if (!roots.empty()) return;
    again = nullptr;
    idle->open();
  }

  Executor executor;
  SystemClock clock{executor};
  Timer again;
  std::shared_ptr<detail::Gate> idle;
  std::vector<std::shared_ptr<Root>> roots;
  bool stopping = false;
  Result<void> outcome;
};

namespace {

Task<void> run_root(std::shared_ptr<Root> root, Task<Result<void>> body) {
  root->result = co_await std::move(body);
}

Task<Result<void>> succeed_after(Task<void> body) {
  co_await std::move(body);
  co_return Result<void>();
}

}  // namespace

TaskGroup::TaskGroup(Executor executor) : state_(std::make_shared<State>(std::move(executor))) {}

TaskGroup::~TaskGroup() {
  stop();
}

void TaskGroup::spawn(std::string name, Task<Result<void>> root) {
  auto entry = std::make_shared<Root>();
  entry->name = std::move(name);
  state_->roots.push_back(entry);
  state_->idle->close();
  // The handler owns the root's entry: the signal outlives the coroutine that listens to it.
  const auto ended = [state = state_, entry](const std::exception_ptr& thrown) { state->ended(entry, thrown); };
  boost::asio::co_spawn(state_->executor, detail::without_throwing(run_root(entry, std::move(root))),
                        boost::asio::bind_cancellation_slot(entry->cancel.slot(), ended));
  if (state_->stopping) state_->cancel_all();
}

void TaskGroup::spawn(std::string name, Task<void> root) {
  spawn(std::move(name), succeed_after(std::move(root)));
}

void TaskGroup::stop() {
  state_->stop();
}

bool TaskGroup::stopping() const {
  return state_->stopping;
}

std::vector<std::string> TaskGroup::running() const {
  std::vector<std::string> names;
  names.reserve(state_->roots.size());
  for (const auto& root : state_->roots)
    names.push_back(root->name);
  return names;
}

Result<void> TaskGroup::outcome() const {
  return state_->outcome;
}

Task<Result<void>> TaskGroup::join(Duration limit) {
  const auto state = state_;
  SystemClock clock(state->executor);
  auto ended = co_await detail::Gate::wait(state->idle, &clock, clock.steady() + limit, false);
  if (!ended) co_return std::unexpected(std::move(ended).error());
  if (*ended) co_return Result<void>();
  std::vector<std::string> names;
  for (const auto& root : state->roots)
    names.push_back(root->name);
  co_return fail(Errc::timeout, "after {} ms still running: {}", limit.count(), fmt::join(names, ", "));
}

Result<void> run_until_stopped(boost::asio::io_context& io, TaskGroup& group, Duration grace) {
  boost::asio::signal_set signals(io, SIGTERM, SIGINT);
  signals.async_wait([&group](boost::system::error_code error, int number) {
    if (error) return;
    log::info("stopping", {{"signal", number == SIGTERM ? "SIGTERM" : "SIGINT"}});
    group.stop();
  });
  std::optional<SteadyTime> give_up;
  while (!group.running().empty()) {
    if (io.stopped()) io.restart();
    if (group.stopping() && !give_up) give_up = std::chrono::steady_clock::now() + grace;
    if (!give_up) {
      io.run_one();
    } else if (io.run_one_until(*give_up) == 0 || std::chrono::steady_clock::now() >= *give_up) {
      log::error("tasks did not stop in time", {{"tasks", fmt::format("{}", fmt::join(group.running(), ", "))}});
      break;
    }
  }
  // The handler refers to the group, which may not outlive this call.
  boost::system::error_code ignored;
  signals.cancel(ignored);
  return group.outcome();
}

}  // namespace fabric::async
