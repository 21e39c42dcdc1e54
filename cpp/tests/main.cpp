#include <exception>

#include "check.hpp"

int main() {
  int failed = 0;
  for (const auto& test : check::tests) {
    check::failures = 0;
    try {
      test.run();
    } catch (const std::exception& error) {
      ++check::failures;
      std::printf("%s: unexpected exception: %s\n", test.name, error.what());
    }
    if (check::failures > 0) {
      ++failed;
      std::printf("FAILED %s\n", test.name);
    }
  }
  std::printf("%d passed, %d failed\n", static_cast<int>(check::tests.size()) - failed, failed);
  return failed == 0 ? 0 : 1;
}
