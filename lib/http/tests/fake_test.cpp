#include <fabric/async/testing.hpp>
#include <fabric/http/fake/scripted_transport.hpp>

#include <gtest/gtest.h>

namespace fabric::http::fake {
namespace {

constexpr auto kNever = async::Deadline::never;

Request get(const std::string& target) {
  return {.method = Method::get, .url = Url::parse("https://api").value().with_target(target)};
}

TEST(ScriptedTransport, RepliesInOrderAndRecords) {
  async::TestLoop loop;
  ScriptedTransport transport(loop.executor());
  transport.reply(200, "one");
  transport.reply_error(Errc::timeout, "slow");
  EXPECT_EQ(loop.run(transport.send(get("/a"), kNever()))->body, "one");
  EXPECT_EQ(loop.run(transport.send(get("/b"), kNever())).error().code, Errc::timeout);
  EXPECT_EQ(loop.run(transport.send(get("/c"), kNever())).error().code, Errc::unavailable);
  ASSERT_EQ(transport.requests().size(), 3);
  EXPECT_EQ(transport.requests()[1].url.target, "/b");
}

TEST(ScriptedTransport, AsksTheFunctionBeyondTheScript) {
  async::TestLoop loop;
  ScriptedTransport transport(loop.executor());
  transport.on_request([](const Request& request) { return Response{.status = 200, .body = request.url.target}; });
  EXPECT_EQ(loop.run(transport.send(get("/a"), kNever()))->body, "/a");
}

TEST(ScriptedTransport, AStreamIsPushedFromTheTest) {
  async::TestLoop loop;
  ScriptedTransport transport(loop.executor());
  const auto script = transport.reply_stream();
  auto stream = loop.run(transport.open_stream(get("/watch"), kNever()));
  ASSERT_TRUE(stream);
  std::optional<Result<std::string>> chunk;
  loop.start((*stream)->next(Duration(1)), chunk);
  loop.settle();
  EXPECT_FALSE(chunk);
  script->push("event");
  loop.settle();
  ASSERT_TRUE(chunk);
  EXPECT_EQ(**chunk, "event");
  script->finish();
  EXPECT_EQ(*loop.run((*stream)->next(Duration(1))), "");
  EXPECT_FALSE(script->closed_by_reader());
  stream->reset();
  EXPECT_TRUE(script->closed_by_reader());
}

TEST(ScriptedTransport, AStreamBreaksAfterWhatWasPushed) {
  async::TestLoop loop;
  ScriptedTransport transport(loop.executor());
  const auto script = transport.reply_stream();
  script->push("last");
  script->fail({Errc::unavailable, "cut", {}});
  auto stream = loop.run(transport.open_stream(get("/watch"), kNever()));
  EXPECT_EQ(*loop.run((*stream)->next(Duration(1))), "last");
  EXPECT_EQ(loop.run((*stream)->next(Duration(1))).error().code, Errc::unavailable);
}

TEST(ScriptedTransport, APlainReplyToAStreamIsOneChunk) {
  async::TestLoop loop;
  ScriptedTransport transport(loop.executor());
  transport.reply(410, "gone");
  auto stream = loop.run(transport.open_stream(get("/watch"), kNever()));
  EXPECT_EQ((*stream)->head().status, 410);
  EXPECT_EQ(*loop.run((*stream)->next(Duration(1))), "gone");
  EXPECT_EQ(*loop.run((*stream)->next(Duration(1))), "");
}

}  // namespace
}  // namespace fabric::http::fake
