#include <cohort/kernels.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/fail.h"
#include "base/files.h"
#include "base/unique_fd.h"
#include "cli/command.h"
#include "job/job_file.h"
#include "os/shared_wait.h"
#include "score/score_run.h"
#include "train/run/compute_threads.h"

namespace cohort::cli {
namespace {

constexpr const char* kScoreFooter =
    R"(Without --input the validation samples of the run's own job are scored, and how well the model did is
printed: for a run that has completed, the accuracy is that of its summary.json, exactly.

With --input every row of a file is scored: CSV, LIBSVM, an IDX file of images or text, as the model
was trained on. Columns of a CSV file are found by their names, in any order; the target may be there
or not. Where it is, loss and accuracy are told on standard error at the end.

Examples:
  cohort score runs/leaves
  cohort score runs/leaves --input new.csv                      (predictions to standard output)
  cohort score runs/leaves --input new.csv --output scored.json --format json

Exit codes: 0 done, 1 failed, 2 wrong use, a wrong run folder or a wrong file.)";

/// The words of `cohort score`.
struct ScoreWords {
  std::string run;
  std::string input;
  std::string output;
  std::string format = "csv";
  std::string script;
};

void configure_score(CLI::App& app, ScoreWords& words) {
  app.footer(kScoreFooter);
  app.add_option("RUN", words.run,
                 "The folder of a run, or any that has its model.json and weights");
  app.add_option("--input", words.input, "The file to score, instead of the validation samples");
  app.add_option("--output", words.output, "Where to write a prediction for every row");
  app.add_option("--format", words.format, "csv or json (an object a line)")
      ->check(CLI::IsMember({"csv", "json"}));
  app.add_option("--torchscript", words.script,
                 "The TorchScript file that was trained, where the model is one; its code is run");
}

/// Standard output, or a file that is there when all of it is. What is there and no regular file (a
/// device, a pipe) is written to: a file must not take its place, nor that of a link.
class ScoreOutput {
 public:
  explicit ScoreOutput(const std::string& path = "") : path_(path) {
    if (path.empty()) return;
    std::error_code problem;
    const auto status = std::filesystem::status(path, problem);
    if (!std::filesystem::exists(status)) {
      file_.emplace(path);
    } else if (std::filesystem::is_regular_file(status) && !is_descriptor(path)) {
      const auto real = std::filesystem::canonical(path, problem);
      file_.emplace(problem ? path_ : real);
    } else {
      device_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
      if (!device_) fail_errno("cannot open " + path);
    }
  }

  /// May be called many times. Throws Error where the disk is full or the reader has gone.
  void write(std::string_view text) {
    if (file_) return file_->write(text);
    if (device_) return write_all(device_.get(), text, path_);
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
      fail_errno("cannot write to standard output");
    }
  }

  /// Call it once all is written. Without it a file is not there, or still what it was.
  void finish() {
    if (file_) return file_->commit();
    if (device_) return;
    if (std::fflush(stdout) != 0) fail_errno("cannot write to standard output");
  }

 private:
  /// /dev/stdout and the like, of which a file may be behind that others write to, too.
  static bool is_descriptor(const std::string& path) {
    return path.starts_with("/dev/") || path.starts_with("/proc/");
  }

  std::filesystem::path path_;
  // At most one of the two is there; with neither it is standard output.
  std::optional<AtomicFile> file_;
  UniqueFd device_;
};

/// A number, or the word for none: null in JSON, nothing in CSV. So is a loss that is not finite.
std::string or_word(const std::optional<double>& value, const char* word) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : word;
}

/// How well the model did on its own samples, as it is printed.
std::string score_text(const score::Score& score, bool json) {
  if (json) {
    return fmt::format("{{\"samples\": {}, \"loss\": {}, \"accuracy\": {}}}\n", score.samples,
                       or_word(score.loss, "null"), or_word(score.accuracy, "null"));
  }
  return fmt::format("samples,loss,accuracy\n{},{},{}\n", score.samples, or_word(score.loss, ""),
                     or_word(score.accuracy, ""));
}

/// What turns predictions into lines of the format; it keeps a reference to `output`.
score::PredictionWriter writer_to(ScoreOutput& output, const ScoreWords& words,
                                  const artefact::Artefact& artefact) {
  return {words.format == "json" ? score::PredictionFormat::json : score::PredictionFormat::csv,
          artefact.preprocessing.class_names(), artefact.spec.outputs,
          [&output](std::string_view text) { output.write(text); }};
}

/// The predictions would take the place of the rows.
void check_output(const ScoreWords& words) {
  std::error_code unknown;
  if (words.output.empty() || !std::filesystem::is_regular_file(words.output, unknown) ||
      !std::filesystem::equivalent(words.input, words.output, unknown)) {
    return;
  }
  fail(ErrorCode::invalid, "--input and --output are the same file, {}; name another output",
       words.input);
}

/// With --input: a prediction for every row of the file, to --output or standard output. How well
/// the model did, where the file has targets, goes to standard error, so that the output stays
/// clean.
int score_input(const ScoreWords& words) {
  check_output(words);
  use_fast_kernels();
  score::RunModel run = score::load_run_model(words.run, words.script);
  const auto rows = score::open_rows(run.artefact, words.input);
  ScoreOutput output(words.output);
  score::PredictionWriter writer = writer_to(output, words, run.artefact);
  const score::Score score = score::score_rows(run, *rows, &writer);
  output.finish();
  fmt::print(stderr, "{} rows", score.samples);
  if (score.loss) fmt::print(stderr, ", loss {}", *score.loss);
  if (score.accuracy) fmt::print(stderr, ", accuracy {}", *score.accuracy);
  fmt::print(stderr, "\n");
  return 0;
}

/// Without --input: the validation samples of the run's own job, as its config.toml describes it.
/// The accuracy must be that of the run's summary, exactly, so it computes with the threads that a
/// worker of the run had: how a product is cut among them can change its last bits.
int score_own_samples(const ScoreWords& words) {
  const std::filesystem::path config = std::filesystem::path(words.run) / "config.toml";
  score::RunModel run;
  const Job job = [&] {
    try {
      return job::load_job(config);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_found) throw;
      score::load_run_model(words.run,
                            words.script);  // Says what is wrong with the folder, if all of it is.
      fail(ErrorCode::not_found,
           "{} has no config.toml, so which samples its run had is not known; give a file by "
           "--input",
           words.run);
    }
  }();
  const auto workers = static_cast<int>(job.cluster.workers);
  use_fast_kernels(training::threads_of_worker(
      job.cluster, {.cores = os::usable_cores(), .local_workers = workers}));
  run = score::load_run_model(words.run, words.script);
  training::set_compute_threads(job.cluster, {0, workers},
                                training::part_work(job, run.artefact.spec), false);
  std::optional<ScoreOutput> output;
  std::optional<score::PredictionWriter> writer;
  if (!words.output.empty()) writer = writer_to(output.emplace(words.output), words, run.artefact);
  const score::Score score = score::score_validation(run, job, writer ? &*writer : nullptr);
  if (output) output->finish();
  ScoreOutput standard_output;
  standard_output.write(score_text(score, words.format == "json"));
  standard_output.finish();
  return 0;
}

int run_score(const ScoreWords& words) {
  if (words.run.empty()) {
    fail(ErrorCode::invalid, "score needs the folder of a run, as in: cohort score runs/mine");
  }
  return words.input.empty() ? score_own_samples(words) : score_input(words);
}

}  // namespace

Command score_command() {
  const auto words = std::make_shared<ScoreWords>();
  return {"score", "Let a trained model predict: its own validation samples, or a file",
          [words](CLI::App& app) { configure_score(app, *words); },
          [words] { return run_score(*words); }};
}

}  // namespace cohort::cli
