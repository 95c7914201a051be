// The one translation unit that compiles Asio's non-template code (BOOST_ASIO_SEPARATE_COMPILATION).
#include <boost/asio/impl/src.hpp>
