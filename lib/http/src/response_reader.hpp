#pragma once

#include <fabric/http/message.hpp>

#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/optional/optional.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "connection.hpp"

namespace fabric::http {

/// Decodes one response from a connection, piece by piece.
class ResponseReader {
 public:
  struct Limits {
    std::size_t header_bytes = 0;
    /// Absent for a stream.
    std::optional<std::uint64_t> body_bytes;
  };

  ResponseReader(std::unique_ptr<Connection> connection, Method method, Limits limits);

  /// Reads status and headers; interim responses (1xx) are skipped.
  async::Task<Result<Response>> read_head();
  /// The next decoded bytes of the body, empty at its end.
  async::Task<Result<std::string>> read_some();
  /// The whole body.
  async::Task<Result<std::string>> read_all();

  /// Whether any byte of an answer has arrived: a request that got none may be sent again.
  bool heard_anything() const { return heard_anything_; }

  /// The connection, when the response is complete and the server keeps it open.
  std::unique_ptr<Connection> release();

 private:
  /// Appends to a string without trusting Content-Length for an allocation, unlike Beast's string_body.
  struct Body {
    using value_type = std::string;

    class reader {  // NOLINT(readability-identifier-naming): Beast looks for this name.
     public:
      template <bool IsRequest, class Fields>
      reader(boost::beast::http::header<IsRequest, Fields>&, value_type& body) : body_(body) {}

      void init(const boost::optional<std::uint64_t>&, boost::beast::error_code& error) { error = {}; }

      template <class Buffers>
      std::size_t put(const Buffers& buffers, boost::beast::error_code& error) {
        error = {};
        std::size_t count = 0;
        for (const auto buffer : boost::beast::buffers_range_ref(buffers)) {
          body_.append(static_cast<const char*>(buffer.data()), buffer.size());
          count += buffer.size();
        }
        return count;
      }

      void finish(boost::beast::error_code& error) { error = {}; }

     private:
      value_type& body_;
    };
  };

  using Parser = boost::beast::http::response_parser<Body>;

  void start_message();
  /// Decodes what is buffered; reads more when that gives nothing new.
  async::Task<Result<void>> advance();
  Result<bool> decode();

  std::unique_ptr<Connection> connection_;
  Method method_;
  Limits limits_;
  std::unique_ptr<Parser> parser_;
  std::string raw_;
  std::vector<char> scratch_;
  bool heard_anything_ = false;
};

}  // namespace fabric::http
