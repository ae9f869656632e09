// Job files as TOML, and what errors say of their values. What keys mean needs LibTorch, and has
// tests of its own (job/hostile_job_test.cc).

#include "base/fail.h"
#include "formats/toml_text.h"
#include "targets.h"

namespace cohort::fuzz {
namespace {

void describe(const ::toml::table& table) {
  for (const auto& [key, node] : table) {
    (void)formats::description_of(node);
    if (const ::toml::table* inner = node.as_table()) describe(*inner);
  }
}

}  // namespace

void toml(Bytes input) {
  describe(formats::parse_toml(text_of(input), "job.toml"));
}

Seeds toml_seeds() {
  return {
      "[job]\nname = \"a\"\nseed = 7\n[model]\nlayers = [ {type=\"conv2d\", out=32}, {type='relu'} "
      "]\n",
      "[train]\nepochs = 1 # words\noptimizer = { kind = \"sgd\", lr = 0.1 }\nd = "
      "1979-05-27T07:32:00Z\n",
      "a.b = \"\"\"x\n\\u00e9\"\"\"\n[[c.d]]\ne = [1, [2.5e3, -inf], 0x1F]\nf = '''y'''\n"};
}

}  // namespace cohort::fuzz
