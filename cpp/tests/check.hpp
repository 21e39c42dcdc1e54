// The whole test framework: TEST registers a function, CHECK counts a failure and continues.
#pragma once

#include <cstdio>
#include <vector>

namespace check {

struct Test {
  const char* name;
  void (*run)();
};
inline std::vector<Test> tests;
inline int failures = 0;  // of the test now running

struct Register {
  Register(const char* name, void (*run)()) { tests.push_back({name, run}); }
};

}  // namespace check

#define TEST(name)                                          \
  static void name();                                       \
  static const check::Register register_##name{#name, name}; \
  static void name()

#define CHECK(...)                                                             \
  do {                                                                         \
    if (!(__VA_ARGS__)) {                                                      \
      ++check::failures;                                                       \
      std::printf("%s:%d: CHECK(%s)\n", __FILE__, __LINE__, #__VA_ARGS__);     \
    }                                                                          \
  } while (false)
