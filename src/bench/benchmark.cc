#include "bench/benchmark.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/deadline.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/json.h"
#include "base/names.h"
#include "bench/peers.h"
#include "bench/results.h"
#include "kernel/kernel_report.h"

namespace cohort::bench {
namespace {

constexpr int kFewestRounds = 7;

void check(const BenchOptions& options) {
  if (options.quick || options.rounds >= kFewestRounds) return;
  fail(ErrorCode::invalid,
       "{} rounds are too few to compare anything on a machine whose speed varies; --rounds must "
       "be at least {}, or use --quick to only see that everything runs",
       options.rounds, kFewestRounds);
}

bool listed(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const auto& one : all) {
    if (!listed(names, one.name)) names.push_back(one.name);
  }
  return names;
}

/// Keeps those of `all` that are in `only`, unless none is: then the words speak of something else.
template <class Named>
void narrow(std::vector<Named>& all, const std::vector<std::string>& only) {
  const auto meant = [&](const Named& one) { return listed(only, one.name); };
  if (std::none_of(all.begin(), all.end(), meant)) return;
  std::erase_if(all, [&](const Named& one) { return !meant(one); });
}

/// What --only leaves: cases, contenders, or both. The reference stays, whoever is named, since
/// nobody is compared with anybody else.
void select(Benchmark& benchmark, const std::vector<std::string>& only) {
  auto known = names_of(benchmark.cases);
  for (const auto& name : names_of(benchmark.contenders)) known.push_back(name);
  for (const auto& name : names_of(benchmark.left_out)) known.push_back(name);
  for (const auto& name : only) check_known("--only", name, known);

  const std::string reference = benchmark.contenders.front().name;
  narrow(benchmark.cases, only);
  auto with_reference = only;
  const auto named = names_of(benchmark.contenders);
  const bool some = std::any_of(only.begin(), only.end(),
                                [&](const std::string& name) { return listed(named, name); });
  if (some) with_reference.push_back(reference);
  narrow(benchmark.contenders, with_reference);
}

/// What stands in bench/ beside this command stands there beside the other build's, too.
std::string of_other_build(const std::string& word, const std::filesystem::path& binary) {
  const auto path = std::filesystem::path(word);
  if (peer_program(path.filename()) != word) return word;
  return binary.parent_path() / "bench" / path.filename();
}

/// The contender as another build of this command is, on the same terms.
Contender of_other_build(const Contender& ours, const std::string& binary) {
  Contender other = ours;
  other.name = "against";
  other.label = fmt::format("{} of {}", ours.label, binary);
  other.group = [group = ours.group, binary](const Case& one_case) {
    ProgramGroup programs = group(one_case);
    for (Program& program : programs.programs) {
      for (std::string& word : program.words) word = of_other_build(word, binary);
      program.words.front() = binary;
    }
    return programs;
  };
  return other;
}

/// Each of our own contenders gets the other build's right behind it.
void add_other_build(std::vector<Contender>& contenders, const std::string& binary) {
  if (!std::filesystem::is_regular_file(binary) || access(binary.c_str(), X_OK) != 0) {
    fail(ErrorCode::invalid, "--against {} is no program that can be run", binary);
  }
  const std::string path = std::filesystem::absolute(binary).string();
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    if (!contenders[i].own) continue;
    contenders.insert(contenders.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                      of_other_build(contenders[i], path));
    ++i;
  }
}

/// Runs the rounds and gathers what comes out. A contender that fails is noted and the rest goes
/// on.
class Rounds {
 public:
  explicit Rounds(const Benchmark& benchmark) : benchmark_(benchmark) {}

  /// Every case, every contender of it; round r begins with contender r.
  void run(int round) {
    for (const auto& one_case : benchmark_.cases) {
      for (std::size_t i = 0; i < benchmark_.contenders.size(); ++i) {
        const auto turn = (i + static_cast<std::size_t>(round)) % benchmark_.contenders.size();
        const auto& contender = benchmark_.contenders[turn];
        if (contender.takes_part(one_case)) measure(one_case, contender, round);
      }
    }
  }

  Results results;
  std::vector<std::string> problems;
  bool reference_failed = false;

 private:
  /// One contender, one case, one round: runs its programs and takes their values or notes what is
  /// wrong.
  void measure(const Case& one_case, const Contender& contender, int round) {
    const Finished finished = run_together(contender.group(one_case));
    std::string problem = finished.problem;
    if (finished.succeeded) problem = take(finished, one_case, contender, round);
    if (problem.empty()) return;
    problems.push_back(fmt::format("{}, {}, {} workers, round {}: {}", contender.label,
                                   one_case.name, one_case.workers, round + 1, problem));
    reference_failed |= contender.name == benchmark_.contenders.front().name;
  }

  /// What is wrong with the output, or nothing.
  std::string take(const Finished& finished, const Case& one_case, const Contender& contender,
                   int round) {
    try {
      Measurement run{one_case, contender, {}, finished.started_at};
      for (const auto& output : finished.outputs) {
        run.lines.push_back(parse_json(output));
        if (run.lines.back().is_discarded()) return "printed no line of JSON that can be read";
      }
      for (const auto& reading : benchmark_.read(run)) {
        results.add(reading.metric, reading.label, round, reading.value);
      }
      return "";
    } catch (const nlohmann::json::exception& error) {
      return fmt::format("printed no line of JSON that can be read ({})", error.what());
    }
  }

  const Benchmark& benchmark_;
};

void say(const std::string& text) {
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

/// The figures of every round, and all that is needed to judge them later: kernels, what was left
/// out, what failed.
void write_json(const std::string& path, const Benchmark& benchmark, const BenchOptions& options,
                const Rounds& rounds) {
  std::vector<std::string> reasons;
  for (const auto& one : benchmark.left_out) reasons.push_back(one.reason);
  const nlohmann::json document = {
      {"benchmark", benchmark.name},
      {"rounds", options.rounds},
      {"quick", options.quick},
      {"reference", benchmark.contenders.front().label},
      {"metrics", rounds.results.to_json(benchmark.contenders.front().label)},
      {"kernels", kernel::to_json(kernel::kernel_report())},
      {"left_out", reasons},
      {"notes", benchmark.notes},
      {"problems", rounds.problems},
  };
  write_file_atomically(path, document.dump(2) + "\n");
}

}  // namespace

// Rounds of everybody instead of everybody's rounds: in each, every contender runs every case once,
// beginning with another one every time, so that a machine that gets slower or faster meanwhile is
// unfair to nobody. The first contender is the reference, and only its failure fails the benchmark.
int run_benchmark(Benchmark benchmark, const BenchOptions& wanted) {
  BenchOptions options = wanted;
  check(options);
  select(benchmark, options.only);
  if (!options.against.empty()) add_other_build(benchmark.contenders, options.against);
  if (options.quick) {
    options.rounds = 1;
    say("quick: figures mean nothing");
  }
  say("kernels: " + kernel::one_line(kernel::kernel_report()));
  for (const auto& one : benchmark.left_out) say("left out: " + one.reason);
  for (const auto& note : benchmark.notes) say(note);

  Rounds rounds(benchmark);
  const bool terminal = isatty(STDERR_FILENO) != 0;
  for (int round = 0; round < options.rounds; ++round) {
    if (terminal) fmt::print(stderr, "\rround {} of {}", round + 1, options.rounds);
    rounds.run(round);
  }
  if (terminal) fmt::print(stderr, "\r\033[K");

  say(
      fmt::format("rounds: {}, interleaved; one core per worker; the last column is how many times "
                  "better {} is (median of the rounds' ratios)\n",
                  options.rounds, benchmark.contenders.front().label));
  say(format_table(rounds.results, benchmark.contenders.front().label));
  if (benchmark.conclude) say(benchmark.conclude(rounds.results));
  for (const auto& problem : rounds.problems) say("failed: " + problem);
  if (!options.json_path.empty()) write_json(options.json_path, benchmark, options, rounds);
  return rounds.reference_failed ? 1 : 0;
}

}  // namespace cohort::bench
