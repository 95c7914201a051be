#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

// Ends the process when something is false that only our own code can make false. What the world can do (input, kernel,
// network) is a Result, never an assertion. Active in all builds.
#define FABRIC_ASSERT(condition)                                                           \
  do {                                                                                     \
    if (!(condition)) [[unlikely]] {                                                       \
      fmt::print(stderr, "{}:{}: assertion failed: {}\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                        \
    }                                                                                      \
  } while (false)
