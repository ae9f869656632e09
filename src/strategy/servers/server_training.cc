#include "strategy/servers/server_training.h"

#include "strategy/servers/delta_push.h"
#include "strategy/servers/gradient_push.h"
#include "strategy/servers/server_options.h"

namespace cohort {

std::unique_ptr<Strategy> make_server_training(const StrategyContext& context) {
  if (pushes_deltas(context.options)) return make_delta_push(context);
  return make_gradient_push(context);
}

}  // namespace cohort
