#include "tensor/step_context.h"

namespace cohort {

StepContext& step_context() {
  thread_local StepContext context;
  return context;
}

}  // namespace cohort
