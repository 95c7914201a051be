// The one translation unit that compiles the non-template code of Beast and of Asio's TLS layer.
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
