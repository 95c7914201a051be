#include <fabric/async/event.hpp>

#include "gate.hpp"

namespace fabric::async {

namespace {

Task<Result<void>> wait_without_deadline(std::shared_ptr<detail::Gate> gate, bool consume) {
  auto opened = co_await detail::Gate::wait(std::move(gate), nullptr, SteadyTime::max(), consume);
  if (!opened) co_return std::unexpected(std::move(opened).error());
  co_return Result<void>();
}

}  // namespace

Notifier::Notifier(Executor executor) : gate_(std::make_shared<detail::Gate>(executor)) {}

Notifier::~Notifier() = default;

void Notifier::notify() {
  gate_->open();
}

Task<Result<void>> Notifier::wait() {
  return wait_without_deadline(gate_, true);
}

Task<Result<bool>> Notifier::wait_until(Clock& clock, SteadyTime deadline) {
  return detail::Gate::wait(gate_, &clock, deadline, true);
}

Task<Result<bool>> Notifier::wait_for(Clock& clock, Duration duration) {
  return wait_until(clock, clock.steady() + duration);
}

Event::Event(Executor executor) : gate_(std::make_shared<detail::Gate>(executor)) {}

Event::~Event() = default;

void Event::set() {
  gate_->open();
}

void Event::clear() {
  gate_->close();
}

bool Event::is_set() const {
  return gate_->is_open();
}

Task<Result<void>> Event::wait() {
  return wait_without_deadline(gate_, false);
}

Task<Result<bool>> Event::wait_until(Clock& clock, SteadyTime deadline) {
  return detail::Gate::wait(gate_, &clock, deadline, false);
}

}  // namespace fabric::async
