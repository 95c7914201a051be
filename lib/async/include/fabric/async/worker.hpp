#pragma once

#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace fabric::async {

namespace detail {
template <class R>
struct ResultOf {
  using type = Result<R>;
};

template <class T>
struct ResultOf<Result<T>> {
  using type = Result<T>;
};
}  // namespace detail

/// One extra thread for calls that block (kernel sockets, files). Work runs there one at a time, in order. Destroy the
/// Worker before the io_context whose coroutines use it: the destructor waits for the work under way and drops the
/// rest.
class Worker {
 public:
  /// The name (at most 15 bytes) is the thread's name in ps and in crash reports.
  explicit Worker(const std::string& name);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  /// Runs `work` on the thread and resumes on the io thread with its value; a function that returns T or Result<T>
  /// gives Result<T>. Exceptions become Errc::internal. Once started, the call is waited for even when the coroutine is
  /// cancelled, so `work` may refer to the caller's frame; a coroutine that is already cancelled gets Errc::cancelled
  /// and nothing runs, unless `even_if_cancelled` (for cleaning up at the end).
  template <class F>
  Task<typename detail::ResultOf<std::invoke_result_t<F&>>::type> run(F work, bool even_if_cancelled = false) {
    using R = typename detail::ResultOf<std::invoke_result_t<F&>>::type;

    struct Call {
      F work;
      std::optional<R> value;
    };

    auto call = std::make_shared<Call>(Call{std::move(work), {}});
    auto done = co_await execute(
        [call] {
          if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
            call->work();
            call->value.emplace();
          } else {
            call->value.emplace(call->work());
          }
        },
        even_if_cancelled);
    if (!done) co_return std::unexpected(std::move(done).error());
    co_return std::move(*call->value);
  }

 private:
  struct Thread;
  Task<Result<void>> execute(std::function<void()> work, bool even_if_cancelled);
  std::unique_ptr<Thread> thread_;
};

}  // namespace fabric::async
