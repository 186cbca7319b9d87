/* A trainer in C11 that carries a gRPC of its own: the client must neither call
 * this grpc_init nor be disturbed by it. Prints "STEP DIGEST" for each step.
 *
 *   c_client SOCKET_DIR FEED STEPS
 */
#include <penstock/client.h>
#include <stdio.h>
#include <stdlib.h>

void grpc_init(void);
void grpc_init(void) {
  fputs("the trainer's grpc_init was called\n", stderr);
  abort();
}

int main(int argc, char** argv) {
  ps_attach_options options = {0};
  ps_feed* feed = NULL;
  ps_error error;
  long steps, i;
  if (argc != 4) return 2;
  steps = strtol(argv[3], NULL, 10);
  options.struct_bytes = sizeof(options);
  options.address = argv[1];
  options.feed = argv[2];
  options.job = "c-client";
  options.resume = "new";
  options.data_world = 1;
  options.ack_leader = 1;
  if (ps_attach(&options, &feed, &error) != PS_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  for (i = 0; i < steps; ++i) {
    ps_step* step = NULL;
    ps_step_info info;
    ps_tensor tensor;
    if (ps_next(feed, &step, &error) != PS_OK) {
      fprintf(stderr, "%s\n", error.message);
      return 1;
    }
    info.struct_bytes = sizeof(info);
    if (ps_step_get_info(step, &info) != PS_OK ||
        ps_step_tensor(step, 0, &tensor) != PS_OK || tensor.data == NULL) {
      return 1;
    }
    printf("%llu %s\n", (unsigned long long)info.number, info.batch_digest);
    ps_step_release(step);
  }
  ps_close(feed);
  return 0;
}
