// Where a step's time goes, by type of operation, from C++.
//
//   c++ profile.cpp $(pkg-config --cflags --libs tfc) -o profile && ./profile mlp.pb init
#include <tfc.h>

#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

static void check(tfc_error *error) {
  if (!error) return;
  std::string text = tfc_error_text(error);
  tfc_error_free(error);
  throw std::runtime_error(text);
}

int main(int argc, char **argv) try {
  if (argc != 3) throw std::runtime_error("usage: profile GRAPH TARGET");
  tfc_model *opened = nullptr;
  check(tfc_model_open(argv[1], nullptr, &opened));
  std::unique_ptr<tfc_model, decltype(&tfc_model_close)> model(opened, tfc_model_close);

  const char *targets[] = {argv[2]};
  tfc_call_spec spec = {};
  spec.targets = targets;
  spec.target_count = 1;
  tfc_call *prepared = nullptr;
  check(tfc_call_prepare(model.get(), &spec, &prepared));
  std::unique_ptr<tfc_call, decltype(&tfc_call_free)> call(prepared, tfc_call_free);

  for (int i = 0; i < 3; i++) check(tfc_call_run(call.get(), nullptr, nullptr)); // until memory has settled
  tfc_profile *taken = nullptr;
  check(tfc_call_profile(call.get(), nullptr, nullptr, &taken));
  std::unique_ptr<tfc_profile, decltype(&tfc_profile_free)> profile(taken, tfc_profile_free);

  std::map<std::string, double> by_op;
  const tfc_profile_event *events = tfc_profile_events(profile.get());
  for (size_t i = 0; i < tfc_profile_count(profile.get()); i++) by_op[events[i].op] += events[i].duration_us;
  for (const auto &row : by_op) std::printf("%-28s %10.1f us\n", row.first.c_str(), row.second);
} catch (const std::exception &error) {
  std::fprintf(stderr, "profile: %s\n", error.what());
  return 1;
}
