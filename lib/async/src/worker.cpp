#include <fabric/async/worker.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <exception>
#include <pthread.h>
#include <thread>

#include "gate.hpp"
#include "guard.hpp"

namespace fabric::async {

struct Worker::Thread {
  explicit Thread(const std::string& name) : guard(boost::asio::make_work_guard(io)), thread([this] { io.run(); }) {
    pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
  }

  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  ~Thread() {
    io.stop();
    thread.join();
  }

  boost::asio::io_context io{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard;
  std::thread thread;
};

Worker::Worker(const std::string& name) : thread_(std::make_unique<Thread>(name)) {}

Worker::~Worker() = default;

Task<Result<void>> Worker::execute(std::function<void()> work, bool even_if_cancelled) {
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  if (!even_if_cancelled && co_await cancelled()) co_return co_await detail::yield_cancelled();
  const Executor executor = co_await boost::asio::this_coro::executor;
  auto gate = std::make_shared<detail::Gate>(executor);
  auto thrown = std::make_shared<std::exception_ptr>();
  // The guard keeps the io thread's loop from running out of work while the thread is busy. `thrown` is written before
  // and read after the post back, which orders the two.
  boost::asio::post(thread_->io,
                    [work = std::move(work), gate, thrown, guard = boost::asio::make_work_guard(executor)]() mutable {
                      try {
                        work();
                      } catch (...) {
                        *thrown = std::current_exception();
                      }
                      // Captures of `work` die here, not on whichever thread lets go last.
                      work = nullptr;
                      boost::asio::post(guard.get_executor(), [gate = std::move(gate)] { gate->open(); });
                    });
  co_await detail::Gate::wait_open(gate);
  if (*thrown) {
    Error error = detail::error_of(*thrown);
    error.code = Errc::internal;
    co_return std::unexpected(std::move(error).with("worker thread"));
  }
  co_return Result<void>();
}

}  // namespace fabric::async
